"""Rules of the source tree: who imports whom, what an import costs, names and sizes."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PACKAGES = {
    "rllm_envs": "packages/rllm-envs/src/rllm_envs",
    "rllm_agents": "packages/rllm-agents/src/rllm_agents",
    "rllm_learn": "packages/rllm-learn/src/rllm_learn",
}
SOURCE_ROOTS = ("packages", "benchmarks", "examples", "scripts", "tests")

MAX_FILE_LINES = 400
MAX_BODY_LINES = 60
MAX_CLASS_LINES = 300
SIZE_EXCEPTIONS: dict[str, str] = {}
"""Path, or path:function, or path:Class -> why it may exceed its cap."""

BANNED_NAMES = {"utils", "util", "common", "helpers", "helper", "misc", "manager", "managers"}
BANNED_PATTERN = re.compile(
    r"(^|_)(utils?|helpers?|v\d+|new|old|legacy|deprecated|unified)$|^(new|old|unified)_"
)

HEAVY = {
    *("torch", "transformers", "tokenizers", "vllm", "ray", "peft", "datasets", "pandas"),
    *("math_verify", "sympy", "matplotlib", "tensorboard", "hydra", "aiohttp"),
}


def tracked_files(repository: Path, *suffixes: str) -> list[Path]:
    """Files of the checkout that git does not ignore, as paths relative to its root."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=repository,
        capture_output=True,
        text=True,
    )
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    paths = sorted({Path(name) for name in listing.stdout.split("\0") if name})
    return [
        path
        for path in paths
        if (repository / path).is_file() and (not suffixes or path.suffix in suffixes)
    ]


def python_files(repository: Path) -> list[Path]:
    return [path for path in tracked_files(repository, ".py") if path.parts[0] in SOURCE_ROOTS]


def run_fresh(code: str) -> Any:
    """What the code, run in a fresh interpreter, prints last, read as JSON."""
    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120
    )
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout.splitlines()[-1])


def modules_after(statement: str) -> set[str]:
    """Top-level names in sys.modules after the statement, in a fresh interpreter."""
    loaded = run_fresh(f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))")
    return {name.partition(".")[0] for name in loaded}


# Imports


def test_the_import_contracts_hold(repository: Path) -> None:
    code = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports())"
    finished = subprocess.run(
        [sys.executable, "-c", code], cwd=repository, capture_output=True, text=True
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert ", 0 broken" in finished.stdout


def test_importing_the_envs_loads_nothing_beyond_gymnasium_and_numpy() -> None:
    extra = modules_after("import rllm_envs") - modules_after("import gymnasium, numpy")
    assert {name for name in extra if name not in sys.stdlib_module_names} == {"rllm_envs"}


def test_making_an_env_loads_no_heavy_library() -> None:
    loaded = modules_after(
        "import gymnasium, rllm_envs\n"
        "env = gymnasium.make('rllm/Math-v0'); env.reset(seed=0); env.step('12'); env.close()"
    )
    assert not loaded & HEAVY


def test_importing_the_agents_loads_no_heavy_library() -> None:
    assert not modules_after("import rllm_agents") & HEAVY


def test_the_core_of_learning_loads_neither_ray_nor_the_other_packages() -> None:
    loaded = modules_after(
        "import importlib, pkgutil, rllm_learn.core as core\n"
        "for module in pkgutil.walk_packages(core.__path__, 'rllm_learn.core.'):\n"
        "    importlib.import_module(module.name)"
    )
    assert "torch" in loaded
    assert not loaded & {"ray", "rllm_agents", "rllm_envs"}


def test_the_envs_add_at_most_150_milliseconds_to_gymnasium() -> None:
    code = (
        "import gymnasium, numpy, json, time\n"
        "start = time.process_time()\n"
        "import rllm_envs\n"
        "print(json.dumps(time.process_time() - start))"
    )
    seconds = [run_fresh(code) for _ in range(3)]
    assert min(seconds) <= 0.15, seconds  # the least disturbed of three


@pytest.mark.parametrize("package", PACKAGES)
def test_importing_prints_nothing_and_leaves_the_process_as_it_was(package: str) -> None:
    code = (
        "import gymnasium, numpy, os, random, json, warnings\n"
        "import rich.style\n"  # draws a random number itself
        "warnings.simplefilter('error')\n"
        "def state(): return (dict(os.environ), random.getstate(),\n"
        "                     str(numpy.random.get_state()), os.getcwd())\n"
        "before = state()\n"
        f"import {package}\n"
        "print(json.dumps(before == state()))"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (finished.stdout, finished.stderr) == ("true\n", "")


def test_only_one_file_knows_chat_templates(repository: Path) -> None:
    users = [
        str(path)
        for path in tracked_files(repository, ".py")
        if path.parts[0] == "packages"
        and "apply_chat_template" in (repository / path).read_text("utf-8")
    ]
    assert set(users) <= {"packages/rllm-agents/src/rllm_agents/chat_template.py"}


# Names and sizes


def test_no_file_or_directory_is_a_drawer_for_leftovers(repository: Path) -> None:
    found = [
        str(path)
        for path in python_files(repository)
        for part in (*path.parts[:-1], path.stem)
        if part in BANNED_NAMES or BANNED_PATTERN.search(part)
    ]
    assert found == []


def test_test_files_have_names_of_their_own(repository: Path) -> None:
    names = [path.name for path in tracked_files(repository, ".py") if path.parts[0] == "tests"]
    assert sorted(names) == sorted(set(names))


def oversized_parts(path: str, source: str) -> list[str]:
    """Functions and classes of one file that exceed their caps, named with their sizes."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            if ast.get_docstring(node) is not None and len(node.body) > 1:
                first = node.body[1]
            lines, cap = (node.end_lineno or first.lineno) - first.lineno + 1, MAX_BODY_LINES
        elif isinstance(node, ast.ClassDef):
            lines, cap = (node.end_lineno or node.lineno) - node.lineno + 1, MAX_CLASS_LINES
        else:
            continue
        if lines > cap and f"{path}:{node.name}" not in SIZE_EXCEPTIONS:
            found.append(f"{path}:{node.name} has {lines} lines, at most {cap}")
    return found


def test_files_functions_and_classes_stay_within_their_caps(repository: Path) -> None:
    found = []
    for path in python_files(repository):
        source = (repository / path).read_text("utf-8")
        lines = source.count("\n")
        if lines > MAX_FILE_LINES and str(path) not in SIZE_EXCEPTIONS:
            found.append(f"{path} has {lines} lines, at most {MAX_FILE_LINES}")
        found += oversized_parts(str(path), source)
    assert found == [], "split by subject, or give a reason in SIZE_EXCEPTIONS"


def test_every_size_exception_is_still_needed(repository: Path) -> None:
    gone = [name for name in SIZE_EXCEPTIONS if not (repository / name.split(":")[0]).is_file()]
    assert gone == []


def test_the_size_check_counts_body_lines_without_the_docstring() -> None:
    body = "\n".join(["    x = 1"] * (MAX_BODY_LINES + 1))
    assert oversized_parts("f.py", f"def f():\n{body}\n") == ["f.py:f has 61 lines, at most 60"]
    docstring = '    """One line.\n\n' + "\n" * 60 + '    """\n'
    assert oversized_parts("f.py", f"def f():\n{docstring}    return 1\n") == []


# Contents


def test_no_tracked_file_names_a_registry_or_a_path_of_one_machine(repository: Path) -> None:
    pattern = re.compile(r"https?://[^ \"')]*/(simple|packages)/|/(work|farm|root)/[a-z.]")
    found = []
    for path in tracked_files(repository):
        if path.name == "uv.lock":  # its committed text has a test of its own
            continue
        try:
            text = (repository / path).read_text("utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{path}: {match.group()}" for match in pattern.finditer(text)]
    assert found == []


def test_no_tracked_file_is_over_one_megabyte(repository: Path) -> None:
    sizes = {str(path): (repository / path).stat().st_size for path in tracked_files(repository)}
    # `uv run` writes addresses into the file; another test reads what is committed.
    del sizes["uv.lock"]
    assert {path: size for path, size in sizes.items() if size > 1_000_000} == {}


def test_every_package_is_marked_as_typed(repository: Path) -> None:
    assert [p for p in PACKAGES.values() if not (repository / p / "py.typed").is_file()] == []
