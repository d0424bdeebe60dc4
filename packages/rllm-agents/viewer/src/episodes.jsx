// Episodes: filters, the list of those that match, and one or two of them side by side.

import { useEffect, useRef, useState } from "preact/hooks";
import { Filters, FILTERS } from "./filters.jsx";
import { List } from "./list.jsx";
import { goTo, readPlace } from "./place.js";
import { useRows } from "./rows.js";
import { COLOURINGS, mostAdvantage } from "./tokens.jsx";
import { Transcript } from "./transcript.jsx";

function filtersOf(values) {
  return Object.fromEntries(FILTERS.filter((name) => values[name]).map((name) => [name, values[name]]));
}

function numberOf(text) {
  return /^\d+$/.test(text ?? "") ? Number(text) : null;
}

/** Change some values of the place, whatever else has changed since the last drawing. */
function change(more) {
  goTo("episodes", { ...readPlace().values, ...more });
}

function useKeys(values, task) {
  useEffect(() => {
    function pressed(event) {
      const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping) return;
      const colouring = COLOURINGS.find((one) => one.key === event.key);
      if (colouring) change({ colour: colouring.name });
      else if (event.key === "p") change({ pinned: values.pinned ? "" : values.open });
      else if (event.key === "s" && task.current !== null) {
        change({ task_number: values.task_number ? "" : task.current });
      }
    }
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  });
}

function Count({ counts, error }) {
  if (error) return <p class="count error">{error}</p>;
  const isSearching = counts.scanned < counts.total;
  return (
    <p class="count" role="status">
      {counts.matching.toLocaleString("en")} of {counts.total.toLocaleString("en")}
      {isSearching ? `, ${counts.scanned.toLocaleString("en")} searched` : ""}
    </p>
  );
}

export function Episodes({ run, values }) {
  const rows = useRows(filtersOf(values));
  const [open, pinned] = [numberOf(values.open), numberOf(values.pinned)];
  const task = useRef(null); // of the open episode
  const [advantages, setAdvantages] = useState({}); // largest of each episode that was open
  useKeys(values, task);
  if (run.num_episodes === 0 && run.is_complete) return <p class="empty">This run kept no episodes.</p>;
  const numbers = [open, pinned].filter((number, i, all) => number !== null && all.indexOf(number) === i);
  // One scale for both, or their colours could not be compared.
  const most = Math.max(0, ...numbers.map((number) => advantages[number] ?? 0));
  return (
    <div class="episodes">
      <aside>
        <Filters
          run={run}
          values={values}
          onChange={(name, value) => change({ [name]: value })}
          onReset={() => change(Object.fromEntries(FILTERS.map((name) => [name, ""])))}
        />
        <Count counts={rows.counts} error={rows.error} />
        <List rows={rows} open={open} pinned={pinned} onOpen={(row) => change({ open: row.number })} />
      </aside>
      <div class={`panes of-${numbers.length}`}>
        {numbers.length === 0 && <p class="empty">Choose an episode. <kbd>?</kbd> lists the keys.</p>}
        {numbers.map((number) => (
          <Transcript
            key={number}
            number={number}
            generation={run.generation}
            colouring={values.colour ?? "logprob"}
            most={most}
            isPinned={number === pinned}
            onChange={change}
            onLoad={(episode) => {
              if (number === open) task.current = episode.task_number;
              setAdvantages((known) => ({ ...known, [number]: mostAdvantage(episode) }));
            }}
          />
        ))}
      </div>
    </div>
  );
}
