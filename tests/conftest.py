"""Settings of every test run, and the place of the real data sets.

The environment is set before any test module is imported: one thread per process (tiny models
are fastest so), no model hub, no window system, and a private RLLM_HOME, so that a test never
touches the data sets that the user has registered. Subprocesses of tests inherit it.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest

try:
    import hypothesis
except ImportError:  # the environments are also tested where nothing but pytest is beside them
    hypothesis = None

REPOSITORY = Path(__file__).resolve().parent.parent
_DATA_VARIABLE = "RLLM_DATA_DIR"
_private_home = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    if hypothesis is not None:
        # How fast inputs are drawn says how busy the machine is.
        hypothesis.settings.register_profile(
            "rllm", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
        )
        hypothesis.settings.load_profile("rllm")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["MPLBACKEND"] = "Agg"
    # A shell's background jobs ignore ctrl-C, and so would every process that a test starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.stash[_private_home] = tempfile.mkdtemp(prefix="rllm-tests-")
    os.environ["RLLM_HOME"] = config.stash[_private_home]


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(config.stash[_private_home], ignore_errors=True)


@pytest.fixture(scope="session")
def repository() -> Path:
    """Root of the checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Directory of the real data sets (gsm8k/, math500/, ...); the test skips where unset."""
    value = os.environ.get(_DATA_VARIABLE)
    if not value:
        pytest.skip(f"needs real data: {_DATA_VARIABLE} is not set")
    path = Path(value)
    if not path.is_dir():
        pytest.fail(f"{_DATA_VARIABLE} names no directory: {value!r}")
    return path


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    for_data = [report for report in skipped if _DATA_VARIABLE in str(report.longrepr)]
    terminalreporter.write_line(
        f"{len(for_data)} tests skipped for lack of data ({_DATA_VARIABLE} "
        f"{'set' if os.environ.get(_DATA_VARIABLE) else 'not set'})"
    )
