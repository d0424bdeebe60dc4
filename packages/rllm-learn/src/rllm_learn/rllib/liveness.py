"""Actors that are there but do not run: one that hangs is found and ended, like one that died.

Ray reports an actor whose process ends, and waits for ever for one whose process is stopped,
swapped out or cut off. So whoever waits asks now and then for a sign of life, which an actor gives
in a thread of its own, however busy its work keeps it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Any

import ray
from ray.exceptions import RayError

logger = logging.getLogger(__name__)

SIGNS_OF_LIFE: Mapping[str, int] = {"signs_of_life": 1}
"""Ray's concurrency groups of an actor class that has `Living` as a base."""

_LONGEST_BETWEEN_LOOKS = 5.0
_SECOND_LOOK = 1.0


class Living:
    """Base of actor classes that can be watched; made with ``concurrency_groups=SIGNS_OF_LIFE``."""

    def is_alive(self) -> bool:
        """Return True, which a process that is stopped does not."""
        return True


def first_done(calls: Mapping[Any, Any], *, hang_timeout: float) -> list[Any]:
    """Return the calls that have ended; waits for one, but not for an actor that hangs.

    Such an actor is ended; Ray starts it again where it may. Its call has ended then, with an
    error, after at most `hang_timeout` and ten seconds or so.

    Args:
        calls: Reference -> handle of the actor that it waits for, which was there when it was
            called: one that is still starting gives no sign of life.
        hang_timeout: Seconds without a sign of life after which an actor is taken to hang.
    """
    between = min(hang_timeout / 4, _LONGEST_BETWEEN_LOOKS)
    while True:
        done, _ = ray.wait(list(calls), num_returns=1, timeout=between)
        if done:
            return done
        _end_hung(list(calls.values()), hang_timeout)


def finish(calls: Mapping[Any, Any], *, hang_timeout: float) -> list[Any]:
    """Return the results of all calls in their order.

    Raises:
        RayError: The first failure, as soon as it is known, while others may still be under way.
    """
    waiting = dict(calls)
    while waiting:
        for reference in first_done(waiting, hang_timeout=hang_timeout):
            ray.get(reference)
            del waiting[reference]
    return ray.get(list(calls))


def _end_hung(actors: Collection[Any], hang_timeout: float) -> None:
    asked = {_ask(actor): actor for actor in actors}
    late = list(asked)
    # A second look: where this process itself was stopped for long, its clock is over at once.
    for seconds in (hang_timeout, _SECOND_LOOK):
        _, late = ray.wait(late, num_returns=len(late), timeout=seconds)
        if not late:
            return
    for reference in late:
        actor = asked[reference]
        logger.warning("%r hangs: no sign of life for %g s; it is ended", actor, hang_timeout)
        try:
            ray.kill(actor, no_restart=False)
        except RayError as error:
            logger.warning("%r could not be ended: %s", actor, error)


def _ask(actor: Any) -> Any:
    return actor.is_alive.options(concurrency_group=next(iter(SIGNS_OF_LIFE))).remote()
