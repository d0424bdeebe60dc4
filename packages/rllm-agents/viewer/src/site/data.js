// What the page shows: scripts beside it that call `rllmSite(name, json)`, because a page that is a
// file may fetch nothing.

import { useEffect, useState } from "preact/hooks";

const values = new Map(); // null where a script is not there
const waiting = new Map(); // name -> those who want it

function put(name, value) {
  values.set(name, value);
  for (const call of waiting.get(name) ?? []) call();
  waiting.delete(name);
}

globalThis.rllmSite = (name, json) => put(name, JSON.parse(json));

function load(name) {
  const script = document.createElement("script");
  script.src = `data/${name.split("/").map(encodeURIComponent).join("/")}.js`;
  script.onload = () => script.remove();
  script.onerror = () => {
    script.remove();
    put(name, null);
  };
  document.head.append(script);
}

/** A value by name: undefined while it is loaded, null where it is not there; "" asks for none. */
export function useData(name) {
  const [, draw] = useState(0);
  useEffect(() => {
    if (name === "") return undefined;
    const call = () => draw((count) => count + 1);
    if (values.has(name)) {
      call(); // it came between drawing and now
      return undefined;
    }
    if (!waiting.has(name)) {
      waiting.set(name, new Set());
      load(name);
    }
    waiting.get(name).add(call);
    return () => waiting.get(name)?.delete(call);
  }, [name]);
  return values.get(name);
}
