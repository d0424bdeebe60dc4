// Leaderboards: policies of all suites, and their scores by environment.

import { goTo, readPlace } from "../place.js";
import { oneLine, visible } from "../visible.js";
import { Chosen, matches, Typed } from "./fields.jsx";
import { TABS } from "./tabs.js";
import { Table } from "./table.jsx";

const SHADES = 5;

function change(more) {
  goTo("leaderboards", { ...readPlace(TABS).values, ...more });
}

/** A bar from 0 to 1 with the interval on it. */
function Bar({ interval }) {
  if (interval === null) return null;
  const [value, low, high] = interval;
  const part = (number) => `${100 * Math.min(Math.max(number, 0), 1)}%`;
  const width = Math.min(Math.max(high, 0), 1) - Math.min(Math.max(low, 0), 1);
  return (
    <span class="bar" aria-hidden="true">
      <i style={{ width: part(value) }} />
      <b style={{ left: part(low), width: `${100 * width}%` }} />
    </span>
  );
}

function Score({ interval }) {
  if (interval === null) return "–";
  const [value, low, high] = interval;
  return (
    <span class="score">
      <Bar interval={interval} />
      <span>
        <b>{value.toFixed(3)}</b> <small>{low.toFixed(3)} to {high.toFixed(3)}</small>
      </span>
    </span>
  );
}

function mean(numbers) {
  return numbers.length ? numbers.reduce((sum, one) => sum + one, 0) / numbers.length : null;
}

/** Mean over the entries that are shown, normalised where all of them are. */
function shownMean(line) {
  const entries = line.shown.map((place) => line.row.entries[place]);
  const isScaled = entries.every((entry) => entry[2] !== null);
  return mean(entries.map((entry) => (isScaled ? entry[2][0] : entry[0][0])));
}

function policyColumns({ hasSuites, hasRatings, isFiltered, open }) {
  const total = (name) => (line) => line.row[name][0];
  return [
    {
      key: "policy", label: "policy", isText: true, isHead: true, value: (line) => line.row.name,
      show: (line) => (
        <button type="button" class="name" aria-expanded={open === line.key} onClick={() => change({ open: open === line.key ? "" : line.key })}>
          {oneLine(line.row.name, 40)}
        </button>
      ),
    },
    ...(hasSuites ? [{ key: "suite", label: "suite", isText: true, value: (line) => line.suite.name, show: (line) => line.suite.name }] : []),
    ...(hasRatings ? [{ key: "rating", label: "rating", title: "Bradley-Terry, random play is 0", value: (line) => line.row.rating?.[0], show: (line) => line.row.rating?.[0].toFixed(0) ?? "" }] : []),
    {
      key: "score", label: "score", title: "0 is random play, 1 the oracle; with its 95 % interval",
      value: (line) => (line.row.normalised ?? line.row.score)[0],
      show: (line) => <Score interval={line.row.normalised} />,
    },
    ...(isFiltered ? [{ key: "shown", label: "shown entries", title: "Mean over the entries below", value: shownMean, show: (line) => shownMean(line)?.toFixed(3) ?? "–" }] : []),
    { key: "raw", label: "raw", title: "Mean reward", value: total("score"), show: (line) => line.row.score[0].toFixed(3) },
    { key: "solved", label: "solved", value: total("solved"), show: (line) => line.row.solved[0].toFixed(3) },
    { key: "tokens", label: "tokens", value: (line) => line.row.tokens, show: (line) => line.row.tokens.toLocaleString("en") },
    { key: "seconds", label: "seconds", value: (line) => line.row.seconds, show: (line) => Math.round(line.row.seconds).toLocaleString("en") },
    { key: "seed", label: "seed", value: (line) => line.row.seed },
    { key: "made", label: "made", isText: true, value: (line) => line.row.date, show: (line) => `${oneLine(line.row.date, 12)} ${oneLine(line.row.commit.slice(0, 7), 7)}` },
  ];
}

function shade(line, name) {
  const scaled = line.scores.get(name)?.[2];
  if (!scaled) return "";
  return `heat-${Math.min(Math.max(Math.round(scaled[0] * (SHADES - 1)), 0), SHADES - 1)}`;
}

function entryColumns(names, hasSuites) {
  return [
    {
      key: "env", label: "environment", isText: true, isHead: true, value: (line) => line.entry.name,
      show: (line) => (
        <a href={`#environments?${new URLSearchParams({ open: line.entry.id, entry: `${line.suite.name}/${line.entry.name}` })}`}>
          {oneLine(line.entry.name, 60)}
        </a>
      ),
    },
    ...(hasSuites ? [{ key: "suite", label: "suite", isText: true, value: (line) => line.suite.name, show: (line) => line.suite.name }] : []),
    { key: "threshold", label: "threshold", title: "Mean reward that counts as solved", value: (line) => (line.entry.threshold === "" ? null : Number(line.entry.threshold)), show: (line) => visible(line.entry.threshold) },
    ...names.map((name) => ({
      key: `by ${name}`, label: oneLine(name, 24),
      value: (line) => line.scores.get(name)?.[0][0],
      show: (line) => line.scores.get(name)?.[0][0].toFixed(3) ?? "",
      shade: (line) => shade(line, name),
    })),
  ];
}

function Details({ row, span }) {
  return (
    <tr class="details">
      <td colSpan={span}>
        <pre>{visible(JSON.stringify({ policy: row.policy, hardware: row.hardware, versions: row.versions, commit: row.commit }, null, 1))}</pre>
      </td>
    </tr>
  );
}

function select(site, values) {
  const suites = site.suites.filter((suite) => !values.suite || suite.name === values.suite);
  const lines = suites.flatMap((suite) => {
    const shown = suite.entries.flatMap((entry, i) => (matches(entry.name, values.env) ? [i] : []));
    const rows = suite.rows.filter((row) => matches(row.name, values.policy));
    return shown.length ? rows.map((row) => ({ key: `${suite.name}/${row.name}`, suite, row, shown })) : [];
  });
  const entries = suites.flatMap((suite) => {
    const mine = lines.filter((line) => line.suite === suite);
    return (mine[0]?.shown ?? []).map((place) => ({
      suite,
      entry: suite.entries[place],
      scores: new Map(mine.map(({ row }) => [row.name, row.entries[place]])),
    }));
  });
  return { lines, entries };
}

export function Boards({ site, values }) {
  const { lines, entries } = select(site, values);
  const names = [...new Set(lines.map((line) => line.row.name))];
  const hasSuites = !values.suite;
  const hasRatings = lines.some((line) => line.row.rating !== null);
  const columns = policyColumns({ hasSuites, hasRatings, isFiltered: Boolean(values.env), open: values.open });
  const chosen = site.suites.find((suite) => suite.name === values.suite);
  return (
    <div class="view">
      <form class="fields" onSubmit={(event) => event.preventDefault()} aria-label="Filters">
        <Chosen name="suite" label="Suite" options={[["", "all"], ...site.suites.map(({ name }) => [name, name])]} value={values.suite} onChange={change} />
        <Typed name="policy" label="Policy" id="search" placeholder="part of its name" value={values.policy} onChange={change} />
        <Typed name="env" label="Environment" placeholder="part of its name" value={values.env} onChange={change} />
        <p class="count" role="status">{lines.length} rows, {entries.length} entries</p>
      </form>
      {chosen && <p class="note">{visible(chosen.summary)} Version {chosen.version}.</p>}
      <h2>Policies</h2>
      <Table
        label="Policies" columns={columns} rows={lines} rowKey={(line) => line.key}
        order={values.order ?? "score"} isDown={values.order ? values.down === "1" : true}
        onOrder={(order, isDown) => change({ order, down: isDown ? "1" : "0" })}
        after={(line) => values.open === line.key && <Details key="details" row={line.row} span={columns.length} />}
      />
      <h2>Raw scores by environment</h2>
      <Table
        label="Raw scores by environment" columns={entryColumns(names, hasSuites)} rows={entries}
        rowKey={(line) => `${line.suite.name}/${line.entry.name}`}
        order={values.by ?? ""} isDown={values.bydown === "1"}
        onOrder={(by, isDown) => change({ by, bydown: isDown ? "1" : "0" })}
      />
      <p class="note">
        Shaded from random play to the oracle. A score of 0 is random play, 1 the oracle; intervals are of 95 %.
      </p>
    </div>
  );
}
