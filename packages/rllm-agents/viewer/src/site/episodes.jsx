// Episodes of one entry of a suite: two policies on the same task, side by side.

import { Text } from "../text.jsx";
import { oneLine, short, visible } from "../visible.js";
import { useData } from "./data.js";

function outcome(played) {
  return played.success ? "solved" : "unsolved";
}

function Message({ role, text }) {
  const isPolicy = role === "assistant";
  return (
    <article class={`message ${isPolicy ? "assistant" : "user"}`}>
      <h4>{isPolicy ? "policy" : "environment"}</h4>
      <Text text={text} />
    </article>
  );
}

function Pane({ played, task }) {
  return (
    <section class="pane" aria-label={`${visible(played.policy)}, task ${task.task}`}>
      <div class="pane-head">
        <h3>{oneLine(played.policy, 60)}</h3>
        <p class="chips">
          <span class={`reward ${outcome(played)}`}>reward {short(played.reward)}</span>
          <span>{outcome(played)}</span>
          <span>{oneLine(played.end, 40)}</span>
          <span>{played.turns === 1 ? "1 turn" : `${played.turns} turns`}</span>
          {played.tokens > 0 && <span>{played.tokens.toLocaleString("en")} tokens</span>}
        </p>
      </div>
      {played.problem && <p class="error">{visible(played.problem)}</p>}
      {played.messages.map(([role, text], index) => <Message key={index} role={role} text={text} />)}
      {played.messages_left_out > 0 && <p class="note">{played.messages_left_out} more messages are not shown.</p>}
    </section>
  );
}

/** Whether an episode of a seed's task is kept with its transcript. */
export function keptTasks(found, seed) {
  return new Set((found?.tasks ?? []).filter((task) => task.seed === seed).map((task) => task.task));
}

/**
 * `name` is suite/entry; `task` counts among those kept, unless `number` and `seed` say which;
 * `policies` are shown where they played it, all of them where none is named.
 */
export function EntryEpisodes({ name, task, number, seed, policies, onTask }) {
  const found = useData(name);
  if (found === undefined) return <p class="empty">Reading…</p>;
  if (found === null) return <p class="empty">The site was made without transcripts.</p>;
  if (found.problem) return <p class="empty">No transcripts: {visible(found.problem)}</p>;
  const chosen =
    number === undefined
      ? found.tasks[task] ?? found.tasks[0]
      : found.tasks.find((one) => one.task === number && one.seed === seed);
  if (!chosen) return <p class="empty">No transcript is kept of this task.</p>;
  const shown = policies
    .map((policy) => chosen.played.find((played) => played.policy === policy))
    .filter((played) => played !== undefined);
  return (
    <>
      {onTask && (
        <div class="tools" role="group" aria-label="Tasks">
          {found.tasks.map((one, index) => (
            <button key={index} type="button" aria-pressed={one === chosen} onClick={() => onTask(index)}>
              task {oneLine(one.id, 40)}{one.seed === 0 ? "" : `, seed ${one.seed}`}
            </button>
          ))}
        </div>
      )}
      {shown.length === 0 && <p class="empty">Neither policy has played this task.</p>}
      <div class={`panes of-${shown.length}`}>
        {shown.map((played, index) => <Pane key={`${index} ${played.policy}`} played={played} task={chosen} />)}
      </div>
    </>
  );
}
