// Fields above the views: text typed, and one of several chosen.

import { visible } from "../visible.js";

export function Typed({ name, label, value = "", onChange, ...more }) {
  return (
    <label>
      <span>{label}</span>
      <input type="search" name={name} value={value} onInput={(event) => onChange({ [name]: event.target.value })} {...more} />
    </label>
  );
}

/** `options` are pairs of value and text. */
export function Chosen({ name, label, options, value = "", onChange }) {
  return (
    <label>
      <span>{label}</span>
      <select name={name} value={value} onChange={(event) => onChange({ [name]: event.target.value })}>
        {options.map(([key, text]) => (
          <option key={key} value={key}>{visible(text)}</option>
        ))}
      </select>
    </label>
  );
}

/** Whether a text has all words of another, in any case. */
export function matches(text, wanted) {
  const low = String(text).toLowerCase();
  return String(wanted ?? "").toLowerCase().split(/\s+/).every((word) => low.includes(word));
}
