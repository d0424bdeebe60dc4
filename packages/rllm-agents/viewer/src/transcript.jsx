// One episode: what happened, what was said, what each token weighed.

import { useEffect, useState } from "preact/hooks";
import { get } from "./api.js";
import { outcome } from "./list.jsx";
import { Text } from "./text.jsx";
import { COLOURINGS, Tokens } from "./tokens.jsx";
import { oneLine, short, visible } from "./visible.js";

function useEpisode(number, generation, onLoad) {
  const [episode, setEpisode] = useState(null);
  const [error, setError] = useState("");
  useEffect(() => {
    const control = new AbortController();
    get(`episodes/${number}`, {}, control.signal).then(
      (found) => {
        setEpisode(found);
        setError("");
        onLoad(found);
      },
      (problem) => {
        if (!control.signal.aborted) setError(problem.message);
      },
    );
    return () => control.abort();
  }, [number, generation]);
  return [episode, error];
}

function Chips({ episode }) {
  return (
    <p class="chips">
      <span class={`reward ${outcome(episode)}`}>
        {episode.reward === null ? "failed" : `reward ${short(episode.reward)}`}
      </span>
      <span>{outcome(episode)}</span>
      <span>{oneLine(episode.termination, 40) || "no ending"}</span>
      <span>{oneLine(episode.kind, 40)}</span>
      {episode.step !== null && <span>step {episode.step}</span>}
    </p>
  );
}

function Message({ message }) {
  const role = ["system", "user", "assistant", "tool"].includes(message.role) ? message.role : "other";
  return (
    <article class={`message ${role}`}>
      <h4>{oneLine(message.role, 40) || "–"}</h4>
      <Text text={message.content} />
      {message.more && <Text text={message.more} />}
    </article>
  );
}

function Steps({ steps }) {
  return (
    <details class="steps">
      <summary>{steps.length === 1 ? "1 step" : `${steps.length} steps`}</summary>
      <ol>
        {steps.slice(0, 500).map((step, index) => (
          <li key={index}>
            <b>reward {short(step.reward)}</b>
            <Text text={step.action} />
            {step.info && <Text text={step.info} />}
          </li>
        ))}
      </ol>
    </details>
  );
}

function Trajectory({ trajectory, colouring, most }) {
  const hasTokens = trajectory.token_records.length > 0;
  return (
    <section class="trajectory">
      {trajectory.name && <h3>{oneLine(trajectory.name, 80)}</h3>}
      {!hasTokens && colouring !== "text" && <p class="note">No tokens were kept of this episode.</p>}
      {hasTokens && colouring !== "text"
        ? trajectory.token_records.map((record, i) => <Tokens key={i} record={record} colouring={colouring} most={most} />)
        : trajectory.messages.map((message, i) => <Message key={i} message={message} />)}
      <Steps steps={trajectory.steps} />
    </section>
  );
}

function Tools({ episode, colouring, isPinned, onChange }) {
  return (
    <div class="tools">
      <fieldset>
        <legend>Tokens by</legend>
        {COLOURINGS.map((one) => (
          <label key={one.name}>
            <input
              type="radio"
              name={`colour-${episode.number}`}
              checked={one.name === colouring}
              onChange={() => onChange({ colour: one.name })}
            />
            {one.label}
          </label>
        ))}
      </fieldset>
      <button type="button" aria-pressed={isPinned} onClick={() => onChange({ pinned: isPinned ? "" : episode.number })}>
        {isPinned ? "Unpin" : "Pin"}
      </button>
      <button type="button" onClick={() => onChange({ task_number: episode.task_number })}>Same task</button>
    </div>
  );
}

export function Transcript({ number, generation, colouring, most, isPinned, onChange, onLoad }) {
  const [episode, error] = useEpisode(number, generation, onLoad);
  if (error) return <section class="pane"><p class="error">{visible(error)}</p></section>;
  if (episode === null) return <section class="pane"><p class="empty">Reading…</p></section>;
  return (
    <section class={`pane ${isPinned ? "pinned" : ""}`} aria-label={`Episode ${number}`}>
      <div class="pane-head">
        <h2 title={visible(episode.id)}>{oneLine(episode.id, 80) || `episode ${number}`}</h2>
        <Chips episode={episode} />
        <Tools episode={episode} colouring={colouring} isPinned={isPinned} onChange={onChange} />
      </div>
      {episode.error !== null && <pre class="error">{visible(episode.error.slice(0, 20_000))}</pre>}
      {episode.trajectories.map((one, i) => <Trajectory key={i} trajectory={one} colouring={colouring} most={most} />)}
      <details class="task">
        <summary>Task</summary>
        <Text text={JSON.stringify(episode.task, null, 2) ?? ""} />
      </details>
    </section>
  );
}
