// The keys, on request.

import { useEffect, useRef } from "preact/hooks";

const KEYS = [
  ["1 2 3 4", "curves, episodes, timeline, settings"],
  ["/", "search"],
  ["↑ ↓  PgUp PgDn  Home End", "other episodes, where the list has the focus"],
  ["p", "pin the open episode; the next one opens beside it"],
  ["s", "only episodes of the open one's task"],
  ["t l a m", "tokens as plain text, by logprob, advantage, mask"],
  ["← →", "other tokens, where a transcript has the focus"],
  ["?", "these keys"],
];

export function Help({ keys = KEYS, onClose }) {
  const dialog = useRef(null);
  useEffect(() => dialog.current.showModal(), []);
  return (
    <dialog ref={dialog} onClose={onClose}>
      <h2>Keys</h2>
      <dl>
        {keys.map(([pressed, meaning]) => (
          <div key={pressed}>
            <dt>{pressed}</dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
      <button type="button" onClick={() => dialog.current.close()}>Close</button>
    </dialog>
  );
}
