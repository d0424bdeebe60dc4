// A token record as the model saw and wrote it, each token coloured by one of its figures.

import { useState } from "preact/hooks";
import { short, visible } from "./visible.js";

/** Ways to show tokens, and the keys that choose them. */
export const COLOURINGS = [
  { name: "text", key: "t", label: "text" },
  { name: "logprob", key: "l", label: "logprob" },
  { name: "advantage", key: "a", label: "advantage" },
  { name: "mask", key: "m", label: "mask" },
];

const MOST_TOKENS = 4000;
const SHADES = 4;
const MOST_SURPRISE = 5; // nats: a probability of 0.7 %

/** Which turn sampled each token, -1 for those that were given. */
export function turnsOf(record) {
  const turns = new Int32Array(record.token_ids.length).fill(-1);
  record.turns.forEach((turn, index) => turns.fill(index, turn.start, turn.stop));
  return turns;
}

/** Class of a token's colour: more of a shade for less likely, or more advantage. */
export function shade(colouring, record, position, turn, most) {
  if (turn < 0) return "given";
  if (colouring === "mask") return `sampled turn-${turn % 2}`;
  if (colouring === "logprob") {
    const surprise = Math.min(-record.logprobs[position] / MOST_SURPRISE, 1);
    return `surprise-${Math.ceil(surprise * SHADES - 0.02)}`;
  }
  const advantage = record.advantages?.[position];
  if (advantage === undefined) return "unlearned";
  const size = most === 0 ? 0 : Math.ceil((Math.abs(advantage) / most) * SHADES);
  return size === 0 ? "neutral" : `${advantage > 0 ? "plus" : "minus"}-${size}`;
}

function wordsOf(record, position, turn) {
  const sampled = turn < 0 ? null : record.turns[turn];
  const words = [`id ${record.token_ids[position]}`];
  if (sampled) {
    const logprob = record.logprobs[position];
    words.push(`logprob ${short(logprob)} (p ${Math.exp(logprob).toFixed(3)})`);
    words.push(record.advantages ? `advantage ${short(record.advantages[position])}` : "not learned from");
    words.push(`turn ${turn + 1}`, `weights ${short(sampled.weights_version)}`);
  } else words.push("given, not sampled");
  return words.join(" · ");
}

function shownText(record, position) {
  const text = record.texts ? record.texts[position] : `⟨${record.token_ids[position]}⟩`;
  if (text === "") return "·";
  return visible(text).replace(/\n/g, "⏎\n");
}

function Legend({ colouring, record, most }) {
  if (colouring === "mask") {
    return <p class="legend"><span class="token given">given</span> <span class="token sampled turn-0">sampled</span></p>;
  }
  if (colouring === "logprob") {
    return (
      <p class="legend">
        {[0, 1, 2, 3, 4].map((n) => <span key={n} class={`token surprise-${n}`}>{n === 0 ? "p 1" : n === SHADES ? "p < 0.02" : " "}</span>)}
      </p>
    );
  }
  if (record.advantages === null) return <p class="legend">not learned from: no advantages</p>;
  return (
    <p class="legend">
      {[4, 3, 2, 1].map((n) => <span key={n} class={`token minus-${n}`}>{n === SHADES ? `−${short(most)}` : " "}</span>)}
      <span class="token neutral">0</span>
      {[1, 2, 3, 4].map((n) => <span key={n} class={`token plus-${n}`}>{n === SHADES ? `+${short(most)}` : " "}</span>)}
    </p>
  );
}

/** Largest size of an advantage in an episode's sampled tokens: what the strongest shade stands for. */
export function mostAdvantage(episode) {
  let most = 0;
  for (const { token_records: records } of episode.trajectories) {
    for (const { advantages, turns } of records) {
      if (advantages === null) continue;
      for (const { start, stop } of turns) {
        for (let i = start; i < stop; i += 1) most = Math.max(most, Math.abs(advantages[i]));
      }
    }
  }
  return most;
}

export function Tokens({ record, colouring, most }) {
  const [count, setCount] = useState(MOST_TOKENS);
  const [current, setCurrent] = useState(-1);
  const length = Math.min(count, record.token_ids.length);
  const turns = turnsOf(record);

  function point(event) {
    const position = event.target.dataset.position;
    if (position !== undefined) setCurrent(Number(position));
  }
  function pressed(event) {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!move) return;
    event.preventDefault();
    setCurrent(Math.min(Math.max(current + move, 0), length - 1));
  }

  const spans = [];
  for (let i = 0; i < length; i += 1) {
    const classes = `token ${shade(colouring, record, i, turns[i], most)}${i === current ? " current" : ""}`;
    spans.push(<span key={i} data-position={i} class={classes}>{shownText(record, i)}</span>);
  }
  return (
    <section class="record">
      <Legend colouring={colouring} record={record} most={most} />
      <div class="tokens" tabIndex={0} role="group" aria-label="Tokens" dir="ltr" onPointerOver={point} onClick={point} onKeyDown={pressed}>
        {spans}
      </div>
      {record.token_ids.length > length && (
        <button type="button" class="more" onClick={() => setCount(count + MOST_TOKENS)}>
          {(record.token_ids.length - length).toLocaleString("en")} more tokens
        </button>
      )}
      <p class="inspected" role="status">
        {current >= 0 && current < length ? wordsOf(record, current, turns[current]) : "Point at a token, or use ← →"}
      </p>
    </section>
  );
}
