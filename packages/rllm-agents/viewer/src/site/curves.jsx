// Learning curves: one chart for each file or algorithm, a line for each seed.

import { useMemo } from "preact/hooks";
import { axes, Chart } from "../chart.jsx";
import { goTo, readPlace } from "../place.js";
import { colour } from "../theme.js";
import { oneLine, short, visible } from "../visible.js";
import { Chosen, matches, Typed } from "./fields.jsx";
import { TABS } from "./tabs.js";

const COLOURS = ["first", "second", "third", "quiet", "bad"];
const MOST_CHARTS = 200;

function change(more) {
  goTo("curves", { ...readPlace(TABS).values, ...more });
}

/** Steps of all runs and, for each run, its values there. */
function series(runs, metric) {
  const steps = [...new Set(runs.flatMap((run) => run.steps))].sort((a, b) => a - b);
  const lines = runs.map((run) => {
    const at = new Map(run.steps.map((step, i) => [step, run.values[metric][i]]));
    return steps.map((step) => at.get(step) ?? null);
  });
  return [steps, ...lines];
}

function options(runs) {
  return {
    cursor: { sync: { key: "steps" } },
    legend: { live: true },
    scales: { x: { time: false } },
    axes: axes(["", ""]),
    series: [
      { label: "step" },
      ...runs.map((run, index) => ({
        label: `seed ${run.seed}`,
        stroke: colour(COLOURS[index % COLOURS.length]),
        width: 1.5,
        spanGaps: true,
        points: { size: 5 },
        value: (_, value) => short(value),
      })),
    ],
  };
}

function Card({ curve, metric, theme }) {
  const runs = useMemo(() => curve.runs.filter((run) => Object.hasOwn(run.values, metric)), [curve, metric]);
  const data = useMemo(() => series(runs, metric), [runs, metric]);
  const last = data.slice(1).map((values) => values.findLast((value) => value !== null));
  const label = `${curve.name}, ${metric}: ${runs.map((run, i) => `seed ${run.seed} ${short(last[i])}`).join(", ")}`;
  return (
    <figure class="card">
      <figcaption>{oneLine(curve.name, 80)}</figcaption>
      <Chart key={metric} options={() => options(runs)} data={data} height={200} theme={theme} label={visible(label)} />
      <p class="note">
        {curve.command && <code>{oneLine(curve.command, 160)}</code>} {oneLine([curve.date, curve.machine].filter(Boolean).join(", "), 120)}
      </p>
    </figure>
  );
}

export function Curves({ site, values, theme }) {
  if (site.curves.length === 0) return <p class="empty">The site was made without learning curves.</p>;
  const metrics = [...new Set(site.curves.flatMap((curve) => curve.metrics))];
  const metric = metrics.includes(values.metric) ? values.metric : "";
  const shown = site.curves
    .filter((curve) => matches(curve.name, values.curve) && (!metric || curve.metrics.includes(metric)))
    .slice(0, MOST_CHARTS);
  return (
    <div class="view">
      <form class="fields" onSubmit={(event) => event.preventDefault()} aria-label="Filters">
        <Typed name="curve" label="Curve" id="search" placeholder="part of its name" value={values.curve} onChange={change} />
        <Chosen name="metric" label="Metric" options={[["", "first of each"], ...metrics.map((name) => [name, name])]} value={metric} onChange={change} />
        <p class="count" role="status">{shown.length} of {site.curves.length}</p>
      </form>
      <div class="grid">
        {shown.map((curve) => <Card key={curve.name} curve={curve} metric={metric || curve.metrics[0]} theme={theme} />)}
      </div>
    </div>
  );
}
