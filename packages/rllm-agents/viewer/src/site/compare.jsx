// Two policies on the same tasks of a suite.

import { goTo, readPlace } from "../place.js";
import { oneLine, short, visible } from "../visible.js";
import { useData } from "./data.js";
import { EntryEpisodes, keptTasks } from "./episodes.jsx";
import { Chosen, matches, Typed } from "./fields.jsx";
import { Table } from "./table.jsx";
import { TABS } from "./tabs.js";

const Z_95 = 1.959963984540054;
const CLOSE = 1e-4; // scores are written with four digits

function change(more) {
  goTo("compare", { ...readPlace(TABS).values, ...more });
}

/** Mean of the differences by task with its 95 % interval, and how many tasks go to whom. */
export function paired(first, second) {
  const differences = first.map((value, i) => value - second[i]);
  const n = differences.length;
  const mean = differences.reduce((sum, one) => sum + one, 0) / n;
  const variance = differences.reduce((sum, one) => sum + (one - mean) ** 2, 0) / Math.max(n - 1, 1);
  const half = Z_95 * Math.sqrt(variance / n);
  const better = differences.filter((one) => one > CLOSE).length;
  const worse = differences.filter((one) => one < -CLOSE).length;
  return { mean, half, better, worse, equal: n - better - worse };
}

function Difference({ pair }) {
  const sign = pair.mean - pair.half > 0 ? "ahead" : pair.mean + pair.half < 0 ? "behind" : "";
  return (
    <span class={sign}>
      {pair.mean > 0 ? "+" : ""}{pair.mean.toFixed(3)} <small>± {pair.half.toFixed(3)}</small>
    </span>
  );
}

function columnsOf(first, second, isPaired) {
  const score = (place) => (line) => line.scores[place];
  const columns = [
    {
      key: "env", label: "environment", isText: true, isHead: true, value: (line) => line.name,
      show: (line) => <button type="button" class="name" onClick={() => change({ open: line.name, task: "" })}>{oneLine(line.name, 60)}</button>,
    },
    { key: "first", label: oneLine(first, 30), value: score(0), show: (line) => line.scores[0].toFixed(3) },
    { key: "second", label: oneLine(second, 30), value: score(1), show: (line) => line.scores[1].toFixed(3) },
  ];
  if (!isPaired) {
    return [...columns, { key: "difference", label: "difference", value: (line) => line.scores[0] - line.scores[1], show: (line) => (line.scores[0] - line.scores[1]).toFixed(3) }];
  }
  return [
    ...columns,
    { key: "difference", label: "difference", title: "Mean over tasks, with its 95 % interval", value: (line) => line.pair.mean, show: (line) => <Difference pair={line.pair} /> },
    ...["better", "equal", "worse"].map((name) => ({ key: name, label: name, title: `Tasks on which ${first} scores so`, value: (line) => line.pair[name] })),
  ];
}

function Tasks({ suite, line, values, first, second, seed, hasTranscripts }) {
  const kept = keptTasks(useData(hasTranscripts ? `${suite.name}/${line.name}` : ""), seed);
  const task = values.task === undefined || values.task === "" ? Math.min(...kept) : Number(values.task);
  return (
    <section class="tasks">
      <h2>{visible(line.name)}</h2>
      <p class="note">
        One cell a task: what {visible(first)} earned, above what {visible(second)} earned.
        {hasTranscripts && " Those with a frame are kept with transcripts."}
      </p>
      <div class="cells">
        {line.tasks[0].map((value, index) => {
          const other = line.tasks[1][index];
          const side = value - other > CLOSE ? "ahead" : other - value > CLOSE ? "behind" : "";
          const text = `task ${index}: ${short(value)} and ${short(other)}`;
          const isKept = kept.has(index);
          return (
            <button
              key={index} type="button" class={`cell ${side}`} disabled={!isKept} title={text} aria-label={text}
              aria-pressed={index === task} onClick={() => change({ task: index })}
            >
              {short(value)}<br />{short(other)}
            </button>
          );
        })}
      </div>
      {kept.size > 0 && (
        <EntryEpisodes name={`${suite.name}/${line.name}`} number={task} seed={seed} policies={[first, second]} />
      )}
    </section>
  );
}

function linesOf(suite, rows, scores, isPaired, wanted) {
  return suite.entries.flatMap((entry, i) => {
    if (!matches(entry.name, wanted)) return [];
    const means = rows.map((row) => row.entries[i][0][0]);
    if (!isPaired) return [{ name: entry.name, scores: means }];
    const tasks = rows.map((row) => scores[row.name][i]);
    return [{ name: entry.name, scores: means, tasks, pair: paired(...tasks) }];
  });
}

function Counts({ first, second, lines }) {
  const sum = (name) => lines.reduce((total, line) => total + line.pair[name], 0);
  return (
    <p role="status">
      On {(sum("better") + sum("equal") + sum("worse")).toLocaleString("en")} tasks {visible(first)} is better than{" "}
      {visible(second)} on <b>{sum("better").toLocaleString("en")}</b>, equal on <b>{sum("equal").toLocaleString("en")}</b> and
      worse on <b>{sum("worse").toLocaleString("en")}</b>.
    </p>
  );
}

export function Compare({ site, values }) {
  const suite = site.suites.find(({ name }) => name === values.suite) ?? site.suites[0];
  const names = suite.rows.map((row) => row.name);
  const scores = useData(`${suite.name}/_scores`);
  const first = names.includes(values.first) ? values.first : names[0];
  const second = names.includes(values.second) ? values.second : names[1] ?? names[0];
  const rows = [first, second].map((name) => suite.rows.find((row) => row.name === name));
  if (scores === undefined) return <p class="empty">Reading…</p>;
  const isSameTasks = rows[0].seed === rows[1].seed;
  const isPaired = isSameTasks && rows.every((row) => scores !== null && Object.hasOwn(scores, row.name));
  const lines = linesOf(suite, rows, scores, isPaired, values.env);
  const open = lines.find((line) => line.name === values.open);
  const options = names.map((name) => [name, name]);
  return (
    <div class="view">
      <form class="fields" onSubmit={(event) => event.preventDefault()} aria-label="Compared">
        <Chosen name="suite" label="Suite" options={site.suites.map(({ name }) => [name, name])} value={suite.name} onChange={(more) => change({ ...more, open: "", task: "" })} />
        <Chosen name="first" label="Policy" options={options} value={first} onChange={change} />
        <Chosen name="second" label="beside" options={options} value={second} onChange={change} />
        <Typed name="env" label="Environment" id="search" placeholder="part of its name" value={values.env} onChange={change} />
      </form>
      {!isSameTasks && <p class="note">Seeds {rows[0].seed} and {rows[1].seed} are other tasks: only means are compared.</p>}
      {isSameTasks && !isPaired && <p class="note">The episodes of one of them are not beside its row: only means are compared.</p>}
      {isPaired && lines.length > 0 && <Counts first={first} second={second} lines={lines} />}
      <Table
        label="Scores side by side" columns={columnsOf(first, second, isPaired)} rows={lines} rowKey={(line) => line.name}
        order={values.order ?? ""} isDown={values.down === "1"}
        onOrder={(order, isDown) => change({ order, down: isDown ? "1" : "0" })}
      />
      {open && isPaired && (
        <Tasks
          suite={suite} line={open} values={values} first={first} second={second} seed={rows[0].seed}
          hasTranscripts={site.has_transcripts}
        />
      )}
    </div>
  );
}
