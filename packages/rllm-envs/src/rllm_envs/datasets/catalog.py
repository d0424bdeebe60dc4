"""The table of public data sets, by their usual names."""

import difflib
from collections.abc import Mapping

from rllm_envs.datasets.benchmark import Benchmark
from rllm_envs.datasets.choices import CHOICE_BENCHMARKS
from rllm_envs.datasets.instructions import INSTRUCTION_BENCHMARKS
from rllm_envs.datasets.mathematics import MATH_BENCHMARKS
from rllm_envs.datasets.programs import CODE_BENCHMARKS
from rllm_envs.datasets.short_answers import SHORT_ANSWER_BENCHMARKS
from rllm_envs.errors import DatasetNotFoundError

BENCHMARKS: Mapping[str, Benchmark] = {
    benchmark.name: benchmark
    for benchmark in (
        *MATH_BENCHMARKS,
        *CHOICE_BENCHMARKS,
        *CODE_BENCHMARKS,
        *SHORT_ANSWER_BENCHMARKS,
        *INSTRUCTION_BENCHMARKS,
    )
}
"""Each public data set by its name."""

_BY_NAME = {
    name: benchmark
    for benchmark in BENCHMARKS.values()
    for name in (benchmark.name, *benchmark.aliases, benchmark.hub_id.lower().replace("-", "_"))
}
# A name beats a repository that several benchmarks share.
_BY_NAME |= BENCHMARKS


def find_benchmark(name: str) -> Benchmark | None:
    """Return the benchmark of a name, an alias or a repository; None where there is none.

    Case and the difference of ``-`` and ``_`` do not count.
    """
    return _BY_NAME.get(name.lower().replace("-", "_"))


def benchmark_named(name: str) -> Benchmark:
    """Return the benchmark of a name, as ``find_benchmark`` does.

    Raises:
        DatasetNotFoundError: There is none; the message gives the nearest names.
    """
    found = find_benchmark(name)
    if found is None:
        near = difflib.get_close_matches(name.lower(), _BY_NAME, n=3) or list(BENCHMARKS)
        raise DatasetNotFoundError(f"no benchmark is named {name!r:.80}; known: {', '.join(near)}")
    return found
