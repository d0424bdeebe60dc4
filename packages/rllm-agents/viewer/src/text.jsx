// Text of any length: its beginning, and more on request.

import { useState } from "preact/hooks";
import { visible } from "./visible.js";

const FIRST_CHARACTERS = 20_000;
const MORE_CHARACTERS = 100_000;

export function Text({ text }) {
  const [length, setLength] = useState(FIRST_CHARACTERS);
  const rest = text.length - length;
  return (
    <>
      <div class="text" dir="auto">{visible(text.slice(0, length))}</div>
      {rest > 0 && (
        <button type="button" class="more" onClick={() => setLength(length + MORE_CHARACTERS)}>
          {rest.toLocaleString("en")} more characters
        </button>
      )}
    </>
  );
}
