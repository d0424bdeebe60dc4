// A list of any length: only what is in sight is in the document.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { oneLine, short } from "./visible.js";

export const ROW_PIXELS = 46;
const MORE_ROWS = 10;

const MOVES = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };

/** How an episode ended, as a word for classes and readers. */
export function outcome(row) {
  if (row.reward === null) return "failed";
  return row.is_correct ? "solved" : "unsolved";
}

function Row({ row, position, selected, pinned, onOpen }) {
  if (!row) return <div class="row waiting" style={{ top: `${position * ROW_PIXELS}px` }}>…</div>;
  const classes = `row ${selected ? "selected" : ""} ${pinned ? "pinned" : ""}`;
  return (
    <div
      id={`row-${position}`}
      role="option"
      aria-selected={selected}
      class={classes}
      style={{ top: `${position * ROW_PIXELS}px` }}
      onClick={() => onOpen(row)}
    >
      <span class={`reward ${outcome(row)}`} title={outcome(row)}>{row.reward === null ? "✕" : short(row.reward)}</span>
      <span class="said">
        <b>{oneLine(row.asked || row.task, 120) || "–"}</b>
        <i>{oneLine(row.said, 120) || "–"}</i>
      </span>
      <span class="facts">
        {oneLine(row.kind, 20)}
        {row.step === null ? "" : ` ${row.step}`}
        <br />
        {oneLine(row.termination, 24)}
      </span>
    </div>
  );
}

export function List({ rows, open, pinned, onOpen }) {
  const place = useRef(null);
  const [sight, setSight] = useState([0, 20]);
  const [cursor, setCursor] = useState(-1);
  const count = rows.counts.matching;

  function look() {
    const { scrollTop, clientHeight } = place.current;
    const first = Math.max(0, Math.floor(scrollTop / ROW_PIXELS) - MORE_ROWS);
    const last = Math.min(Math.max(count - 1, 0), Math.ceil((scrollTop + clientHeight) / ROW_PIXELS) + MORE_ROWS);
    setSight([first, last]);
    rows.show(first, last);
  }
  useLayoutEffect(look, [count]);
  useEffect(() => {
    const observer = new ResizeObserver(look);
    observer.observe(place.current);
    return () => observer.disconnect();
  }, [count]);

  function pressed(event) {
    const move = MOVES[event.key];
    if (move === undefined || count === 0) return;
    event.preventDefault();
    const next = Math.min(Math.max((cursor < 0 ? -Math.sign(move) || 0 : cursor) + move, 0), count - 1);
    setCursor(next);
    const { scrollTop, clientHeight } = place.current;
    const top = next * ROW_PIXELS;
    if (top < scrollTop) place.current.scrollTop = top;
    else if (top + ROW_PIXELS > scrollTop + clientHeight) place.current.scrollTop = top + ROW_PIXELS - clientHeight;
    const row = rows.rowAt(next);
    if (row) onOpen(row);
  }

  const shown = [];
  for (let position = sight[0]; position <= Math.min(sight[1], count - 1); position += 1) {
    const row = rows.rowAt(position);
    shown.push(
      <Row
        key={position}
        row={row}
        position={position}
        selected={row !== undefined && row.number === open}
        pinned={row !== undefined && row.number === pinned}
        onOpen={(chosen) => {
          setCursor(position);
          onOpen(chosen);
        }}
      />,
    );
  }
  return (
    <div
      ref={place}
      class="list"
      role="listbox"
      aria-label="Episodes"
      aria-activedescendant={cursor < 0 ? undefined : `row-${cursor}`}
      tabIndex={0}
      onScroll={look}
      onKeyDown={pressed}
    >
      <div class="length" style={{ height: `${count * ROW_PIXELS}px` }}>{shown}</div>
    </div>
  );
}
