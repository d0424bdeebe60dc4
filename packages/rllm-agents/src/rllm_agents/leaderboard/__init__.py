"""Leaderboards: suites of environments, rows of policies, and rows checked by playing them again.

`rllm bench` goes through this package. A suite is a data file; `play_suite` plays it with an
`Entrant`, `make_row` writes what came out, `verify_row` replays the recorded actions, and
`leaderboard` prints the rows.
"""

from rllm_agents.leaderboard.play import SCRIPTED, Entrant, EntryPlayed, ScriptedEntrant
from rllm_agents.leaderboard.ratings import ratings
from rllm_agents.leaderboard.rows import read_row, read_rows, reference_scores, row_path
from rllm_agents.leaderboard.run import SuiteRun, make_row, play_suite
from rllm_agents.leaderboard.suites import Suite, SuiteEntry, load_suite, suite_names
from rllm_agents.leaderboard.table import leaderboard, write_between_marks
from rllm_agents.leaderboard.verify import verify_row

__all__ = [
    "SCRIPTED",
    "Entrant",
    "EntryPlayed",
    "ScriptedEntrant",
    "Suite",
    "SuiteEntry",
    "SuiteRun",
    "leaderboard",
    "load_suite",
    "make_row",
    "play_suite",
    "ratings",
    "read_row",
    "read_rows",
    "reference_scores",
    "row_path",
    "suite_names",
    "verify_row",
    "write_between_marks",
]
