// The gallery: all environments of the suites, who scores what there, and how it was played.

import { useRef } from "preact/hooks";
import { goTo, readPlace } from "../place.js";
import { oneLine, short, visible } from "../visible.js";
import { EntryEpisodes } from "./episodes.jsx";
import { Chosen, matches, Typed } from "./fields.jsx";
import { TABS } from "./tabs.js";

const MOVES = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };

function change(more) {
  goTo("environments", { ...readPlace(TABS).values, ...more });
}

function keyOf(env) {
  return env.is_match ? `match ${env.id}` : env.id;
}

function open(env) {
  change({ open: keyOf(env), entry: "", task: "" });
}

function List({ envs, chosen }) {
  const place = useRef(null);
  function pressed(event) {
    const move = MOVES[event.key];
    if (move === undefined || envs.length === 0) return;
    event.preventDefault();
    const next = Math.min(Math.max(envs.indexOf(chosen) + move, 0), envs.length - 1);
    open(envs[next]);
    place.current.children[next].scrollIntoView({ block: "nearest" });
  }
  return (
    <div
      ref={place} class="list names" role="listbox" aria-label="Environments" tabIndex={0} onKeyDown={pressed}
      aria-activedescendant={chosen ? `env-${envs.indexOf(chosen)}` : undefined}
    >
      {envs.map((env, index) => (
        <div
          key={keyOf(env)} id={`env-${index}`} role="option" aria-selected={env === chosen}
          class={env === chosen ? "selected" : ""} onClick={() => open(env)}
        >
          <b>{oneLine(env.id, 60)}{env.is_match ? " (match)" : ""}</b>
          <i>{oneLine(env.summary, 100)}</i>
        </div>
      ))}
    </div>
  );
}

function Scores({ site, entry, suite }) {
  return (
    <table>
      <thead>
        <tr><th scope="col">policy</th><th scope="col">raw score</th><th scope="col">95 % interval</th><th scope="col">solved</th><th scope="col">normalised</th></tr>
      </thead>
      <tbody>
        {site.suites[suite].rows.map((row) => {
          const [score, solved, scaled] = row.entries[entry];
          return (
            <tr key={row.name}>
              <th scope="row">{oneLine(row.name, 60)}</th>
              <td>{score[0].toFixed(3)}</td>
              <td>{score[1].toFixed(3)} to {score[2].toFixed(3)}</td>
              <td>{solved.toFixed(3)}</td>
              <td>{scaled === null ? "–" : scaled[0].toFixed(3)}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

function Environment({ site, env, values }) {
  const names = env.entries.map(([suite, entry]) => `${site.suites[suite].name}/${site.suites[suite].entries[entry].name}`);
  const at = Math.max(names.indexOf(values.entry), 0);
  const [suite, entry] = env.entries[at];
  const rows = site.suites[suite].rows.map((row) => row.name);
  const first = rows.includes(values.first) ? values.first : rows[0];
  const second = rows.includes(values.second) ? values.second : rows.find((name) => name !== first) ?? first;
  const policies = first === second ? [first] : [first, second];
  return (
    <div class="environment">
      <h2>{visible(env.id)}</h2>
      <p class="chips">
        <span>{visible(env.category)}</span>
        {env.threshold && <span>counts as solved from {visible(env.threshold)}</span>}
        {env.is_match && <span>match from each seat</span>}
      </p>
      <p>{visible(env.summary)}</p>
      <form class="fields" onSubmit={(event) => event.preventDefault()} aria-label="Shown episodes">
        <Chosen name="entry" label="As played in" options={names.map((name) => [name, name])} value={names[at]} onChange={change} />
        <Chosen name="first" label="Policy" options={rows.map((name) => [name, name])} value={first} onChange={change} />
        <Chosen name="second" label="beside" options={rows.map((name) => [name, name])} value={second} onChange={change} />
      </form>
      <Scores site={site} suite={suite} entry={entry} />
      {site.has_transcripts ? (
        <EntryEpisodes name={names[at]} task={Number(values.task) || 0} policies={policies} onTask={(task) => change({ task })} />
      ) : (
        <p class="empty">The site was made without transcripts.</p>
      )}
    </div>
  );
}

export function Environments({ site, values }) {
  const categories = [...new Set(site.environments.map((env) => env.category))].sort();
  const envs = site.environments.filter(
    (env) => matches(`${env.id} ${env.summary}`, values.env) && (!values.category || env.category === values.category),
  );
  const chosen = site.environments.find((env) => keyOf(env) === values.open);
  return (
    <div class="episodes">
      <aside>
        <form class="filters two" onSubmit={(event) => event.preventDefault()} aria-label="Filters">
          <Typed name="env" label="Environment" id="search" placeholder="part of name or summary" value={values.env} onChange={change} />
          <Chosen name="category" label="Kind" options={[["", "all"], ...categories.map((name) => [name, name])]} value={values.category} onChange={change} />
        </form>
        <p class="count" role="status">{short(envs.length)} of {short(site.environments.length)}</p>
        <List envs={envs} chosen={chosen} />
      </aside>
      <div class="gallery">
        {chosen ? <Environment site={site} env={chosen} values={values} /> : <p class="empty">Choose an environment. <kbd>?</kbd> lists the keys.</p>}
      </div>
    </div>
  );
}
