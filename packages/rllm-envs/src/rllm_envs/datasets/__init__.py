"""Public data sets by name: where each is, and how its rows become tasks of an environment."""

from rllm_envs.datasets.benchmark import Benchmark
from rllm_envs.datasets.catalog import BENCHMARKS, benchmark_named, find_benchmark
from rllm_envs.datasets.loading import load_benchmark, load_for_env

__all__ = ["BENCHMARKS", "Benchmark", "benchmark_named", "find_benchmark", "load_benchmark",
           "load_for_env"]  # fmt: skip
