// Every number of the run over its steps.

import { useMemo, useState } from "preact/hooks";
import { axes, Chart } from "./chart.jsx";
import { series, useMetrics } from "./metrics.js";
import { colour } from "./theme.js";
import { short, visible } from "./visible.js";

const HEADLINE = ["train/reward", "eval/pass_at_1", "eval/greedy_pass_at_1"];
const NOT_SHOWN = new Set(["step", "time/began", "time/eval_began"]);
const COLOURS = ["first", "second", "third"];
const ORDER = ["eval", "train", "learner", "time", ""];

function namesOf(rows) {
  const names = new Set();
  for (const row of rows) for (const name of Object.keys(row)) names.add(name);
  const rank = (name) => (ORDER.indexOf(groupOf(name)) + ORDER.length + 1) % (ORDER.length + 1);
  return [...names].filter((name) => !NOT_SHOWN.has(name)).sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
}

function groupOf(name) {
  return name.includes("/") ? name.slice(0, name.indexOf("/")) : "";
}

function options(names) {
  return {
    cursor: { sync: { key: "steps" } },
    legend: { live: true },
    scales: { x: { time: false } },
    axes: axes(["", ""]),
    series: [
      { label: "step" },
      ...names.map((name, index) => ({
        label: names.length === 1 ? "value" : visible(name),
        stroke: colour(COLOURS[index % COLOURS.length]),
        width: 1.5,
        spanGaps: true,
        points: { size: 5 },
        value: (_, value) => short(value),
      })),
    ],
  };
}

function Card({ names, title, rows, theme, height }) {
  const data = useMemo(() => series(rows, names), [rows, names.join()]);
  const last = data.slice(1).map((values) => values.findLast((value) => value !== null));
  return (
    <figure class="card">
      <figcaption>{title}</figcaption>
      <Chart
        options={() => options(names)}
        data={data}
        height={height}
        theme={theme}
        label={`${title}: ${names.map((name, i) => `${name} ${short(last[i])}`).join(", ")}`}
      />
    </figure>
  );
}

export function Curves({ theme }) {
  const rows = useMetrics();
  const [wanted, setWanted] = useState("");
  const names = useMemo(() => namesOf(rows ?? []), [rows]);
  if (rows === null) return <p class="empty">Reading…</p>;
  if (rows.length === 0) return <p class="empty">This run has no curves: no metrics.jsonl.</p>;
  const shown = names.filter((name) => name.toLowerCase().includes(wanted.toLowerCase()));
  const headline = HEADLINE.filter((name) => names.includes(name));
  return (
    <div class="curves">
      <label class="wide">
        Metrics{" "}
        <input id="search" type="search" value={wanted} placeholder="part of a name" onInput={(e) => setWanted(e.target.value)} />
      </label>
      {headline.length > 0 && wanted === "" && (
        <Card names={headline} title="reward and held-out pass@1" rows={rows} theme={theme} height={240} />
      )}
      <div class="grid">
        {shown.map((name) => (
          <Card key={name} names={[name]} title={visible(name)} rows={rows} theme={theme} height={140} />
        ))}
      </div>
    </div>
  );
}
