"""What becomes of `rllm train` when it is killed, told to end, or has no room to save."""

from __future__ import annotations

import random
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from training_lives import (
    NUM_STEPS,
    Life,
    import_what_was_imported,
    last_save,
    outcome,
    resumed_at,
    undisturbed,
)

_WRITE_SECONDS = 0.06
"""A moment inside a save is drawn from so long after its beginning."""
_TOO_SMALL = 250_000
"""Bytes of a file: enough for what a step writes, too few for a checkpoint."""


@dataclass
class FaultRow:
    """What one kind of fault came to. Made here and in `training_actors`, shown as a line."""

    name: str
    struck: int = 0
    """Times that it came before the run had ended."""
    from_last_save: int = 0
    """Times that the run went on from the last complete save (or step, within a cluster)."""
    runs: int = 0
    """Runs that came to their end."""
    equal_runs: int = 0
    """Those with the weights, metrics and episodes of the undisturbed run."""
    found_seconds: float | None = None
    """The longest that a loss was not noticed; None where the process itself was lost."""
    bound_seconds: float | None = None
    """What it must stay below."""
    processes_left: int = 0
    """Processes that were still there five seconds later."""
    seconds: float = 0.0
    """The whole row."""
    problems: list[str] = field(default_factory=list)
    """In words."""

    @property
    def holds(self) -> bool:
        """Whether all is as promised."""
        return (
            self.struck > 0
            and self.from_last_save == self.struck
            and self.equal_runs == self.runs > 0
            and not self.problems
            and self.processes_left == 0
            and (self.found_seconds or 0.0) <= (self.bound_seconds or float("inf"))
        )


Strike = Callable[[Life], bool]
"""Waits for its moment and says whether the life was still there."""


class DriverFaults:
    """Runs that are struck again and again until they are done."""

    def __init__(self, scratch: Path, seed: int) -> None:
        """Run once without a fault, for the outcome and the times.

        Args:
            scratch: An empty directory.
            seed: Draws the moments.
        """
        self._scratch = scratch
        self._random = random.Random(seed)
        self._num_runs = 0
        first = scratch / "warm-up"
        undisturbed(first)
        import_what_was_imported(first.with_suffix(".log"))
        self.start_seconds, self.step_seconds = undisturbed(scratch / "undisturbed")
        """To the first save, and of a step, in a run without faults."""
        self._expected = outcome(scratch / "undisturbed")

    def rows(self, moments: int) -> Any:
        """Yield the rows; `moments` of kill -9, half of them during a save, a tenth of others."""
        few = max(moments // 10, 1)
        half = moments // 2
        yield self._row("kill -9, any moment", moments - half, self._at_any_moment, signal.SIGKILL)
        yield self._row("kill -9 during a save", half, self._in_a_save, signal.SIGKILL)
        yield self._row("SIGTERM, any moment", few, self._in_a_step, signal.SIGTERM)
        yield self._damaged(few)
        yield self._no_room(few)

    def _row(self, name: str, moments: int, strike: Strike, number: int) -> FaultRow:
        row = FaultRow(name)
        began = time.monotonic()
        while row.struck < moments or row.runs == 0:
            self._one_run(row, moments, strike, number)
        row.seconds = time.monotonic() - began
        return row

    def _one_run(self, row: FaultRow, moments: int, strike: Strike, number: int) -> None:
        """Strike a run until the moments are used up, and let it end."""
        run_dir = self._new_run()
        last, unproven = 0, 0
        while True:
            life = Life(run_dir)
            if row.struck >= moments or not strike(life):
                self._let_end(row, life, last)
                break
            saved = life.newest()
            code, left = life.end(number)
            if "resumed at" in life.output():
                self._check_resume(row, life, last)
                row.from_last_save += unproven
                unproven = 0
            if code == 0:  # it came to its end just before
                break
            row.struck += 1
            unproven += 1
            row.processes_left += left
            last = last_save(run_dir)
            if last < saved:
                row.problems.append(f"step {saved} was saved, {last} is the last that loads")
            if number == signal.SIGTERM and code != 130:
                row.problems.append(f"exit code {code} after SIGTERM: {life.output()[-300:]}")
        row.from_last_save += unproven
        self._finish(row, run_dir)

    def _let_end(self, row: FaultRow, life: Life, last: int) -> None:
        if life.join() != 0:
            row.problems.append(f"ended with an error: {life.output()[-300:]}")
        self._check_resume(row, life, last)

    def _check_resume(self, row: FaultRow, life: Life, last: int) -> None:
        if resumed_at(life) != last:
            row.problems.append(f"resumed at {resumed_at(life)} instead of {last}")

    def _finish(self, row: FaultRow, run_dir: Path) -> None:
        row.runs += 1
        if outcome(run_dir) == self._expected:
            row.equal_runs += 1
        shutil.rmtree(run_dir)

    def _new_run(self) -> Path:
        self._num_runs += 1
        return self._scratch / f"run-{self._num_runs}"

    # Moments.

    def _at_any_moment(self, life: Life) -> bool:
        """From the start of the process on; every second time after its first save."""
        if self._random.random() < 0.5:
            return self._wait(life, self._random.uniform(0.0, self.start_seconds))
        return self._in_a_step(life)

    def _in_a_step(self, life: Life) -> bool:
        before = life.newest()
        if not life.wait_until(lambda: life.newest() > before):
            return False
        return self._wait(life, self._random.uniform(0.0, 2.0 * self.step_seconds))

    def _in_a_save(self, life: Life) -> bool:
        for _ in range(self._random.randint(1, 3)):
            if not life.wait_until(lambda: not life.is_writing()):
                return False
            if not life.wait_until(life.is_writing):
                return False
        return self._wait(life, self._random.uniform(0.0, _WRITE_SECONDS))

    def _wait(self, life: Life, seconds: float) -> bool:
        until = time.monotonic() + seconds
        return life.wait_until(lambda: time.monotonic() >= until)

    # Saves that are no good.

    def _damaged(self, times: int) -> FaultRow:
        """Cut the newest save short, or change a byte of it."""
        row = FaultRow("the newest save is damaged")
        began = time.monotonic()
        for number in range(times):
            run_dir = self._new_run()
            life = Life(run_dir)
            life.wait_until(lambda life=life: life.newest() >= 3)
            life.end()
            step = last_save(run_dir)
            files = sorted((run_dir / "checkpoints" / f"step-{step:08d}").iterdir())
            broken = files[number % len(files)]
            content = broken.read_bytes()
            place = self._random.randrange(len(content))
            changed = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
            broken.write_bytes(content[:place] if number % 2 else changed)
            row.struck += 1
            again = Life(run_dir)
            self._let_end(row, again, step - 1)
            if broken.name not in again.output():
                row.problems.append(f"{broken.name} is not named")
            row.from_last_save += resumed_at(again) == step - 1
            self._finish(row, run_dir)
        row.seconds = time.monotonic() - began
        return row

    def _no_room(self, times: int) -> FaultRow:
        """Let a save meet a full disk: one line that says so, and the save before stays good."""
        row = FaultRow("no room for a save")
        began = time.monotonic()
        for _ in range(times):
            run_dir = self._new_run()
            last = self._random.randint(1, NUM_STEPS - 1)
            life = Life(run_dir)
            life.wait_until(lambda life=life, last=last: life.newest() >= last)
            life.end()
            step = last_save(run_dir)
            starved = Life(run_dir, file_bytes=_TOO_SMALL)
            code = starved.join()
            lines = [line for line in starved.output().splitlines() if line.startswith("error: ")]
            row.struck += 1
            if code != 1 or len(lines) != 1 or "Traceback" in starved.output():
                row.problems.append(f"exit code {code}: {starved.output()[-300:]}")
            row.from_last_save += last_save(run_dir) == step
            self._let_end(row, Life(run_dir), step)
            self._finish(row, run_dir)
        row.seconds = time.monotonic() - began
        return row
