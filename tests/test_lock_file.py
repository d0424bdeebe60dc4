"""uv.lock: the committed text holds no addresses, and the script that makes it so."""

from __future__ import annotations

import io
import subprocess
import sys
import tomllib
from pathlib import Path

import clean_lock
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

FULL = """\
version = 1
revision = 3
requires-python = ">=3.11"

[[package]]
name = "alpha"
version = "1.0"
source = { registry = "https://example.org/index" }
dependencies = [
    { name = "beta", version = "2.1", source = { registry = "https://a.org" }, marker = "x" },
]
sdist = { url = "https://example.org/a.tar.gz", hash = "sha256:00", size = 1 }
wheels = [
    { url = "https://example.org/a.whl", hash = "sha256:01", size = 1 },
    { url = "https://example.org/b.whl", hash = "sha256:02", size = 1 },
]

[package.optional-dependencies]
fast = [
    { name = "beta" },
]

[package.metadata]
requires-dist = [
    { name = "beta", specifier = ">=2" },
]

[package.metadata.requires-dev]
dev = [{ name = "beta" }]

[[package]]
name = "beta"
version = "2.1"
source = { registry = "https://example.org/index" }
wheels = []
"""

CLEANED = """\
version = 1
revision = 3
requires-python = ">=3.11"

[[package]]
name = "alpha"
version = "1.0"
source = { registry = "index" }
dependencies = [
    { name = "beta", version = "2.1", source = { registry = "index" }, marker = "x" },
]

[package.optional-dependencies]
fast = [
    { name = "beta" },
]

[[package]]
name = "beta"
version = "2.1"
source = { registry = "index" }
"""


def committed(repository: Path, path: str) -> str:
    """Text of a file as it is committed: uv rewrites the lock in the work tree."""
    shown = subprocess.run(
        ["git", "show", f"HEAD:{path}"], cwd=repository, capture_output=True, text=True
    )
    if shown.returncode != 0:
        pytest.skip(f"no committed {path}: not a git checkout, or nothing is committed yet")
    return shown.stdout


def test_addresses_and_metadata_go_and_names_versions_edges_and_markers_stay() -> None:
    assert clean_lock.clean(FULL) == CLEANED


def test_cleaning_a_clean_file_changes_nothing() -> None:
    assert clean_lock.clean(CLEANED) == CLEANED


def test_the_real_file_keeps_every_version_and_edge(repository: Path) -> None:
    full = (repository / "uv.lock").read_text("utf-8")
    cleaned = clean_lock.clean(full)
    assert "://" not in cleaned
    assert "sha256" not in cleaned
    before, after = tomllib.loads(full)["package"], tomllib.loads(cleaned)["package"]
    assert len(before) == len(after) > 50
    for old, new in zip(before, after, strict=True):
        assert (old["name"], old["version"]) == (new["name"], new["version"])
        edges = [
            [(edge["name"], edge.get("version"), edge.get("marker")) for edge in one]
            for one in (old.get("dependencies", []), new.get("dependencies", []))
        ]
        assert edges[0] == edges[1]
        assert old.get("optional-dependencies", {}).keys() == (
            new.get("optional-dependencies", {}).keys()
        )


def test_a_git_dependency_is_refused_with_its_line() -> None:
    text = CLEANED.replace(
        'source = { registry = "index" }', 'source = { git = "ssh://host/x" }', 1
    )
    with pytest.raises(clean_lock.LockError, match=r"line 8 .*git = .*released version"):
        clean_lock.clean(text)


@pytest.mark.parametrize("text", ["", "name = 3", "not toml at all", "version = 2\npackage = []"])
def test_a_file_that_is_no_lock_is_refused(text: str) -> None:
    with pytest.raises(clean_lock.LockError):
        clean_lock.clean(text)


def test_check_answers_by_exit_code_and_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "uv.lock"
    file.write_text(FULL, "utf-8")
    assert clean_lock.main(["--check", str(file)]) == 1
    assert file.read_text("utf-8") == FULL
    assert clean_lock.main([str(file)]) == 0
    assert clean_lock.main(["--check", str(file)]) == 0
    assert file.read_text("utf-8") == CLEANED
    assert clean_lock.main(["--check", str(tmp_path / "absent")]) == 2
    assert "absent" in capsys.readouterr().err


def test_standard_input_is_cleaned_to_standard_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(FULL))
    assert clean_lock.main(["-"]) == 0
    assert capsys.readouterr().out == CLEANED


def test_the_committed_lock_is_address_free(repository: Path) -> None:
    text = committed(repository, "uv.lock")
    assert clean_lock.clean(text) == text, "run `make lock` and commit uv.lock"


def test_the_committed_lock_pins_what_the_packages_declare(repository: Path) -> None:
    pinned: dict[str, list[str]] = {}
    for name, version in clean_lock.pins(committed(repository, "uv.lock")):
        pinned.setdefault(canonicalize_name(name), []).append(version)
    unmet = []
    for file in sorted(repository.glob("packages/*/pyproject.toml")):
        project = tomllib.loads(committed(repository, file.relative_to(repository).as_posix()))[
            "project"
        ]
        extras = project.get("optional-dependencies", {}).values()
        for text in (*project["dependencies"], *(entry for extra in extras for entry in extra)):
            wanted = Requirement(text)
            versions = pinned.get(canonicalize_name(wanted.name), [])
            if not any(wanted.specifier.contains(version) for version in versions):
                unmet.append(f"{file.parent.name}: {text}, pinned: {versions}")
    assert unmet == [], "run `make lock` and commit uv.lock"
