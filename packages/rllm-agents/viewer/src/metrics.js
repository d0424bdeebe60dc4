// The run's numbers, fetched row by row as they are written.

import { useEffect, useRef, useState } from "preact/hooks";
import { get, poll } from "./api.js";

const MILLISECONDS = 2000;

/** Return all rows so far; null before the first answer. */
export function useMetrics() {
  const known = useRef({ generation: -1, rows: [] });
  const [rows, setRows] = useState(null);
  useEffect(
    () =>
      poll(async () => {
        let total = Infinity;
        let isChanged = known.current.generation < 0;
        while (known.current.rows.length < total) {
          const answer = await get("metrics", { after: known.current.rows.length });
          if (answer.generation !== known.current.generation) {
            const wasEmpty = known.current.rows.length === 0;
            known.current = { generation: answer.generation, rows: [] };
            isChanged = true;
            if (!wasEmpty) continue;
          }
          total = answer.total;
          if (answer.rows.length === 0) break;
          known.current.rows = known.current.rows.concat(answer.rows);
          isChanged = true;
        }
        if (isChanged) setRows(known.current.rows);
      }, MILLISECONDS),
    [],
  );
  return rows;
}

/** Steps and values of the rows that have a number under any of some names. */
export function series(rows, names) {
  const kept = rows.filter((row) => names.some((name) => typeof row[name] === "number"));
  const bySteps = new Map();
  for (const row of kept) {
    const point = bySteps.get(row.step) ?? {};
    for (const name of names) if (typeof row[name] === "number") point[name] = row[name];
    bySteps.set(row.step, point);
  }
  const steps = [...bySteps.keys()].sort((a, b) => a - b);
  return [steps, ...names.map((name) => steps.map((step) => bySteps.get(step)[name] ?? null))];
}
