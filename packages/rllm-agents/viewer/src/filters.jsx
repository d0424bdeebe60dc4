// What is looked for among the episodes.

import { useEffect, useState } from "preact/hooks";
import { visible } from "./visible.js";

const WAIT_MILLISECONDS = 250;

/** Names of filters in addresses, as the server knows them. */
export const FILTERS = [
  "text", "task", "task_number", "kind", "outcome", "termination",
  "reward_min", "reward_max", "step_min", "step_max", "order", "descending",
];

function Typed({ name, label, type = "number", value = "", onChange, ...more }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (text === value) return undefined;
    const timer = setTimeout(() => onChange(name, text), WAIT_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <label class={`filter-${name}`}>
      <span>{label}</span>
      <input type={type} name={name} value={text} onInput={(event) => setText(event.target.value)} {...more} />
    </label>
  );
}

function Chosen({ name, label, options, value = "", onChange }) {
  return (
    <label class={`filter-${name}`}>
      <span>{label}</span>
      <select name={name} value={value} onChange={(event) => onChange(name, event.target.value)}>
        {options.map(([key, text]) => (
          <option key={key} value={key}>{text}</option>
        ))}
      </select>
    </label>
  );
}

export function Filters({ run, values, onChange, onReset }) {
  const all = [["", "all"]];
  const named = (texts) => all.concat(texts.map((text) => [text, visible(text) || "–"]));
  const set = { onChange };
  return (
    <form class="filters" onSubmit={(event) => event.preventDefault()} aria-label="Filters">
      <Typed name="text" label="Text" type="search" id="search" placeholder="in the conversation" value={values.text} {...set} />
      <Typed name="task" label="Task" type="search" placeholder="part of its text" value={values.task} {...set} />
      <Chosen name="kind" label="Played for" options={named(run.kinds)} value={values.kind} {...set} />
      <Chosen name="outcome" label="Outcome" options={all.concat(["solved", "unsolved", "failed"].map((w) => [w, w]))} value={values.outcome} {...set} />
      <Chosen name="termination" label="Ended by" options={named(run.terminations)} value={values.termination} {...set} />
      <Chosen name="order" label="Order" options={[["", "as played"], ["reward", "reward"], ["step", "step"], ["task", "task"]]} value={values.order} {...set} />
      <Chosen name="descending" label="Direction" options={[["", "upwards"], ["1", "downwards"]]} value={values.descending} {...set} />
      <Typed name="reward_min" label="Reward from" step="any" value={values.reward_min} {...set} />
      <Typed name="reward_max" label="to" step="any" value={values.reward_max} {...set} />
      <Typed name="step_min" label="Step from" min="0" value={values.step_min} {...set} />
      <Typed name="step_max" label="to" min="0" value={values.step_max} {...set} />
      {values.task_number !== undefined && <p class="one-task">one task only</p>}
      <button type="button" onClick={onReset}>Reset</button>
    </form>
  );
}
