// Episodes that match, fetched page by page as the list is scrolled.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { get, poll } from "./api.js";

const PAGE = 100;
const MILLISECONDS = 1000;
const SEARCHING_MILLISECONDS = 20;
const EMPTY = { generation: -1, total: 0, matching: 0, scanned: 0 };

/**
 * Follow the episodes that a query selects.
 *
 * Returns how many there are, `rowAt(position)` (undefined while it is fetched) and
 * `show(first, last)`, by which the list says what is in sight.
 */
export function useRows(query) {
  const key = JSON.stringify(query);
  const state = useRef(null);
  const [counts, setCounts] = useState(EMPTY);
  const [error, setError] = useState("");
  if (state.current?.key !== key) {
    state.current = { key, pages: new Map(), version: 0, counts: EMPTY, sight: [0, PAGE - 1], asked: new Set() };
  }
  const fetchPage = useCallback(async (page) => {
    const mine = state.current;
    const name = `${mine.version}:${page}`;
    if (mine.asked.has(name)) return;
    mine.asked.add(name);
    try {
      const answer = await get("episodes", { ...JSON.parse(mine.key), first: page * PAGE, count: PAGE });
      if (mine !== state.current) return;
      const before = mine.counts;
      const isOther = answer.generation !== before.generation || answer.matching !== before.matching;
      if (isOther) mine.version += 1;
      mine.pages.set(page, { rows: answer.rows, version: mine.version });
      mine.counts = answer;
      setError("");
      setCounts({ generation: answer.generation, total: answer.total, matching: answer.matching, scanned: answer.scanned });
    } catch (problem) {
      if (mine === state.current) setError(problem.message);
    } finally {
      mine.asked.delete(name);
    }
  }, []);
  const show = useCallback((first, last) => {
    const mine = state.current;
    mine.sight = [first, last];
    for (let page = Math.floor(first / PAGE); page <= Math.floor(last / PAGE); page += 1) {
      if (mine.pages.get(page)?.version !== mine.version) fetchPage(page);
    }
  }, []);
  useEffect(() => {
    setCounts(EMPTY);
    return poll(async () => {
      await fetchPage(Math.floor(state.current.sight[0] / PAGE));
      const { scanned, total } = state.current.counts;
      return scanned < total ? SEARCHING_MILLISECONDS : MILLISECONDS; // a search goes on by asking
    }, MILLISECONDS);
  }, [key]);
  useEffect(() => show(...state.current.sight), [counts]);
  const rowAt = (position) => state.current.pages.get(Math.floor(position / PAGE))?.rows[position % PAGE];
  return { counts, error, rowAt, show };
}
