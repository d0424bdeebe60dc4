// Where the time went: sampling, learning, publishing weights, evaluating.

import { useMemo } from "preact/hooks";
import { axes, Chart } from "./chart.jsx";
import { useMetrics } from "./metrics.js";
import { colour } from "./theme.js";
import { short } from "./visible.js";

const LANES = [
  { name: "evaluate", colour: "quiet" },
  { name: "sync weights", colour: "third" },
  { name: "learn", colour: "second" },
  { name: "sample", colour: "first" },
];

/** Spans [lane, start, end] in seconds since the first; what began when, as the rows say. */
export function spans(rows) {
  const found = [];
  let end = 0;
  for (const row of rows) {
    const parts = [
      [3, row["time/sample_seconds"]],
      [2, (row["time/score_seconds"] ?? 0) + row["time/learn_seconds"]],
      [1, row["time/sync_seconds"]],
    ];
    let at = row["time/began"] ?? end;
    for (const [lane, seconds] of parts) {
      if (!(seconds >= 0)) continue;
      found.push([lane, at, at + seconds, row.step]);
      at += seconds;
    }
    const evaluated = row["time/eval_seconds"];
    if (evaluated >= 0) {
      at = row["time/eval_began"] ?? at;
      found.push([0, at, at + evaluated, row.step]);
      at += evaluated;
    }
    end = at;
  }
  const origin = Math.min(...found.map((span) => span[1]));
  return found.map(([lane, start, stop, step]) => [lane, start - origin, stop - origin, step]);
}

function draw(plot, all) {
  const { ctx, bbox } = plot;
  const [low, high] = [plot.scales.x.min, plot.scales.x.max];
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  for (const [lane, start, stop] of all) {
    if (stop < low || start > high) continue;
    const left = plot.valToPos(start, "x", true);
    const right = plot.valToPos(stop, "x", true);
    const top = plot.valToPos(lane + 0.85, "y", true);
    const bottom = plot.valToPos(lane + 0.15, "y", true);
    ctx.fillStyle = colour(LANES[lane].colour);
    ctx.fillRect(left, top, Math.max(right - left, 1), bottom - top);
  }
  ctx.restore();
}

function options(all) {
  const [x, y] = axes(["seconds since the start", ""]);
  return {
    legend: { show: false },
    scales: { x: { time: false }, y: { range: [0, LANES.length] } },
    axes: [
      { ...x, size: 36 },
      {
        ...y,
        size: 92,
        splits: () => LANES.map((_, lane) => lane + 0.5),
        values: () => LANES.map((lane) => lane.name),
        grid: { show: false },
      },
    ],
    series: [{}, { stroke: "transparent", points: { show: false } }],
    hooks: { draw: [(plot) => draw(plot, all.current)] },
  };
}

export function Timeline({ theme }) {
  const rows = useMetrics();
  const all = useMemo(() => spans(rows ?? []), [rows]);
  const current = useMemo(() => ({ current: [] }), []);
  current.current = all;
  const last = all.reduce((most, span) => Math.max(most, span[2]), 0);
  const data = useMemo(() => [[0, last], [0, 0]], [all]);
  if (rows === null) return <p class="empty">Reading…</p>;
  if (all.length === 0) return <p class="empty">This run recorded no times.</p>;
  const sums = LANES.map((_, lane) => all.reduce((sum, span) => sum + (span[0] === lane ? span[2] - span[1] : 0), 0));
  const known = sums.reduce((a, b) => a + b, 0);
  const table = [...LANES.map((lane, i) => [lane.name, sums[i]]).reverse(), ["other", Math.max(last - known, 0)]];
  return (
    <div class="timeline">
      <p>Drag over a span to look closer, click twice to see all of it.</p>
      <figure class="card">
        <Chart options={() => options(current)} data={data} height={240} theme={theme} label="What the run did when" />
      </figure>
      <table>
        <thead>
          <tr><th scope="col">part</th><th scope="col">seconds</th><th scope="col">share</th></tr>
        </thead>
        <tbody>
          {table.map(([name, seconds]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>{short(seconds)}</td>
              <td>{((100 * seconds) / (last || 1)).toFixed(1)} %</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
