// Light or dark: the system's choice until the reader makes one.

import { useEffect, useState } from "preact/hooks";

const KEY = "rllm-view-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

function chosen() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function current() {
  return document.documentElement.dataset.theme || (system.matches ? "dark" : "light");
}

if (chosen() === "dark" || chosen() === "light") document.documentElement.dataset.theme = chosen();

/** Change from light to dark or back. */
export function nextTheme() {
  const theme = current() === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // Where nothing may be stored the choice holds until the page is left.
  }
  dispatchEvent(new Event("themechange"));
}

export function useTheme() {
  const [theme, setTheme] = useState(current);
  useEffect(() => {
    const changed = () => setTheme(current());
    addEventListener("themechange", changed);
    system.addEventListener("change", changed);
    return () => {
      removeEventListener("themechange", changed);
      system.removeEventListener("change", changed);
    };
  }, []);
  return theme;
}

/** Value of a colour of the style sheet, for what is drawn on a canvas. */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
