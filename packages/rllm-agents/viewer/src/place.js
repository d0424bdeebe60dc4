// Where the reader is stands in the address behind "#", so that it survives a reload.

import { useEffect, useState } from "preact/hooks";

export const TABS = ["curves", "episodes", "timeline", "settings"];

export function readPlace(tabs = TABS) {
  const [tab, query] = location.hash.slice(1).split("?");
  return { tab: tabs.includes(tab) ? tab : tabs[0], values: Object.fromEntries(new URLSearchParams(query)) };
}

/** Go somewhere; values that are empty are left out. */
export function goTo(tab, values = {}) {
  const kept = Object.entries(values).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const query = new URLSearchParams(kept).toString();
  const hash = `#${tab}${query ? `?${query}` : ""}`;
  if (hash === location.hash) return;
  history.replaceState(null, "", hash);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

export function usePlace(tabs = TABS) {
  const [place, setPlace] = useState(() => readPlace(tabs));
  useEffect(() => {
    const changed = () => setPlace(readPlace(tabs));
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return place;
}
