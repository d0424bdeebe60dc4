"""A whole suite with one policy: entries in several processes, recorded ones not played again."""

from __future__ import annotations

import contextlib
import hashlib
import json
import multiprocessing
import signal
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rllm_agents.errors import EngineError
from rllm_agents.leaderboard.figures import entry_figures, normalise, total_figures
from rllm_agents.leaderboard.play import Entrant, EntryPlayed, play_entry
from rllm_agents.leaderboard.provenance import commit, environment_digest, hardware, versions
from rllm_agents.leaderboard.records import pack_records
from rllm_agents.leaderboard.rows import (
    FORMAT,
    REFERENCES,
    actions_path,
    reference_scores,
    row_path,
    write_row,
)
from rllm_agents.leaderboard.suites import Suite, SuiteEntry
from rllm_agents.types import SamplingParams

_MAX_SHOWN_FAILURES = 3


@dataclass(frozen=True)
class SuiteRun:
    """One policy on one suite. Made by the command line."""

    suite: Suite
    name: str
    """Of the row."""
    policy: Mapping[str, Any]
    """Everything that decides what the policy does, as JSON; the cache is kept by it."""
    make_entrant: Callable[[], Entrant]
    """Called in each process; must be picklable where there are several."""
    sampling: SamplingParams
    seed: int
    workers: int
    """Processes; 1 plays in this one."""
    cache: Path
    """Where records are kept as they come in."""

    def record_path(self, entry: SuiteEntry) -> Path:
        """Return where an entry's records are; another one where anything that matters differs."""
        made_of = [self.policy, asdict(self.sampling), self.seed, entry.digest]
        text = json.dumps([*made_of, environment_digest()], sort_keys=True)
        key = hashlib.sha256(text.encode()).hexdigest()[:16]
        return self.cache / self.name / f"{entry.name}-{key}.jsonl"


def play_suite(
    run: SuiteRun, on_entry: Callable[[SuiteEntry, EntryPlayed], None] = lambda entry, played: None
) -> dict[str, EntryPlayed]:
    """Play all entries that are not recorded yet.

    Args:
        run: What is played by whom.
        on_entry: Called when an entry is done.

    Raises:
        EngineError: Episodes failed; all others are recorded, so the same run plays these alone.
        UserError: An environment, its data or the policy is not there.
    """
    played: dict[str, EntryPlayed] = {}
    with contextlib.closing(_entries_played(run)) as done:
        for entry, result in done:
            played[entry.name] = result
            on_entry(entry, result)
    failures = [failure for result in played.values() for failure in result.failures]
    if failures:
        shown = "; ".join(failures[:_MAX_SHOWN_FAILURES])
        raise EngineError(
            f"{len(failures)} episodes failed and have no outcome, so there is no row: {shown}; "
            "the same command plays them again, and no others"
        )
    return {entry.name: played[entry.name] for entry in run.suite.entries}


def make_row(run: SuiteRun, played: Mapping[str, EntryPlayed], results: Path) -> dict[str, Any]:
    """Write a row and its recorded actions, normalised by the references that are there.

    Returns:
        The row.
    """
    path = row_path(results, run.suite.name, run.name)
    digest = pack_records(actions_path(path), {name: e.records for name, e in played.items()})
    figures = {
        entry.name: entry_figures(entry, played[entry.name].records) for entry in run.suite.entries
    }
    references = reference_scores(results, run.suite)
    if run.name in REFERENCES:
        references[run.name] = {name: one["score"][0] for name, one in figures.items()}
    random, oracle = (references.get(name, {}) for name in REFERENCES)
    entries = [
        normalise(
            {**one, "seconds": round(played[name].seconds, 1)}, random.get(name), oracle.get(name)
        )
        for name, one in figures.items()
    ]
    row = {
        "format": FORMAT,
        "suite": run.suite.name,
        "suite_version": run.suite.version,
        "suite_digest": run.suite.digest,
        "name": run.name,
        "policy": {**run.policy, "sampling": asdict(run.sampling)},
        "seed": run.seed,
        "total": total_figures(entries),
        "seconds": round(sum(one.seconds for one in played.values()), 1),
        "workers": run.workers,
        "versions": versions(),
        "environment_digest": environment_digest(),
        "hardware": hardware(),
        "commit": commit(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "actions_sha256": digest,
        "entries": entries,
    }
    write_row(path, row)
    return row


def _entries_played(run: SuiteRun) -> Generator[tuple[SuiteEntry, EntryPlayed], None, None]:
    if run.workers == 1:
        entrant = run.make_entrant()
        try:
            for entry in run.suite.entries:
                yield entry, _play(run, entry, entrant)
        finally:
            entrant.close()
        return
    # Each process makes its own copy of the policy, once for each entry.
    pool = ProcessPoolExecutor(
        run.workers, multiprocessing.get_context("spawn"), initializer=_end_quietly
    )
    try:
        waiting = {pool.submit(_play_alone, run, entry): entry for entry in run.suite.entries}
        for ended in as_completed(waiting):
            yield waiting[ended], ended.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _play_alone(run: SuiteRun, entry: SuiteEntry) -> EntryPlayed:
    entrant = run.make_entrant()
    try:
        return _play(run, entry, entrant)
    finally:
        entrant.close()


def _play(run: SuiteRun, entry: SuiteEntry, entrant: Entrant) -> EntryPlayed:
    return entrant.run(
        play_entry(
            entry, entrant, seed=run.seed, sampling=run.sampling, path=run.record_path(entry)
        )
    )


def _end_quietly() -> None:
    # A ctrl-C in the terminal reaches every process; what has been recorded is on disk.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
