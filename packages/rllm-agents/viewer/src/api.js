// Requests to the server that the page came from.

/** Fetch JSON; an Error with the server's words where it refuses. */
export async function get(path, parameters = {}, signal = undefined) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== "" && value !== null && value !== undefined) query.set(name, value);
  }
  const text = query.toString();
  const response = await fetch(`api/${path}${text ? `?${text}` : ""}`, { signal });
  if (!response.ok) throw new Error(await response.text());
  return response.json();
}

/**
 * Call a function now and again after each `milliseconds`, but not while nobody looks.
 *
 * It may return after how many milliseconds it wants to be called next.
 */
export function poll(call, milliseconds) {
  let timer = null;
  let stopped = false;
  async function turn() {
    let next = milliseconds;
    if (!document.hidden) {
      try {
        next = (await call()) ?? milliseconds;
      } catch {
        // The next turn tries again: the server may have been stopped.
      }
    }
    if (!stopped) timer = setTimeout(turn, next);
  }
  turn();
  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}
