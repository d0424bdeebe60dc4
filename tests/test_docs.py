"""The documents say what is there: listed paths, links, and code blocks.

Every ```python block of README.md, docs/ and the package READMEs must compile, and each name that
it imports from our packages must exist. A block fenced as ```python run is also executed, in the
order of its page, in one interpreter per page and in an empty directory.
"""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
PAGES = sorted(
    path.relative_to(REPOSITORY).as_posix()
    for pattern in ("*.md", "docs/**/*.md", "packages/*/README.md", "benchmarks/**/*.md")
    for path in REPOSITORY.glob(pattern)
)
OUR_PACKAGES = ("rllm_envs", "rllm_agents", "rllm_learn")

_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_SOURCE_PATH = re.compile(
    r"`(?P<path>(?:rllm_(?:envs|agents|learn)|tests|docs|scripts|packages)/[\w./-]*)[`:]"
)
_TREE_LINE = re.compile(r"^(?P<indent>[\s│├└─|`]*)(?P<name>[\w.*-][\w./*-]*)")


def read(page: str) -> str:
    return (REPOSITORY / page).read_text("utf-8")


def blocks(text: str, info: str) -> list[str]:
    """Bodies of the fenced blocks whose info string is exactly that."""
    return [found["body"] for found in _FENCE.finditer(text) if found["info"].strip() == info]


def anchors(text: str) -> set[str]:
    """The names by which the headings of a page can be linked to."""
    headings = re.findall(r"^#+\s+(.+?)\s*$", _FENCE.sub("", text), re.MULTILINE)
    plain = (re.sub(r"[^\w\s-]", "", heading.lower()) for heading in headings)
    return {re.sub(r"\s", "-", heading.strip()) for heading in plain}


def tree_paths(tree: str) -> list[str]:
    """Paths of a directory tree, one name per line; a deeper indent lies in the line above."""
    paths: list[str] = []
    parents: list[tuple[int, str]] = []
    for line in tree.splitlines():
        found = _TREE_LINE.match(line)
        if found is None:
            continue
        depth, name = len(found["indent"]), found["name"].rstrip("/")
        if name == ".":
            continue
        while parents and parents[-1][0] >= depth:
            parents.pop()
        path = f"{parents[-1][1]}/{name}" if parents else name
        parents.append((depth, path))
        paths.append(path)
    return paths


def trees(text: str) -> list[str]:
    """Blocks without a language, or of plain text, that list the packages directory."""
    return [
        body
        for info in ("", "text")
        for body in blocks(text, info)
        if re.search(r"^[\s│├└─]*packages/", body, re.MULTILINE)
    ]


def broken_links(page: str) -> list[str]:
    """Links of a page to files or headings that are not there."""
    broken = []
    for found in _LINK.finditer(_FENCE.sub("", read(page))):
        target, _, anchor = found["target"].partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        linked = (REPOSITORY / page).parent / target if target else REPOSITORY / page
        if not linked.exists() or (
            anchor and linked.suffix == ".md" and anchor not in anchors(linked.read_text("utf-8"))
        ):
            broken.append(found["target"])
    return broken


def unknown_imports(code: str) -> list[str]:
    """Names that a block imports from our packages and that do not exist there."""
    wanted: list[tuple[str, str]] = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and node.module:
            wanted += [(node.module, alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            wanted += [(alias.name, "") for alias in node.names]
    unknown = []
    for module, name in wanted:
        if module.split(".")[0] not in OUR_PACKAGES:
            continue
        try:
            found = importlib.import_module(module)
            if name and not hasattr(found, name):
                importlib.import_module(f"{module}.{name}")
        except ImportError:
            unknown.append(f"{module}:{name}")
    return unknown


def test_the_readme_tree_lists_existing_files_only() -> None:
    listed = [path for tree in trees(read("README.md")) for path in tree_paths(tree)]
    assert listed, "README.md shows no tree of the repository"
    assert [path for path in listed if not any(REPOSITORY.glob(path))] == []


def test_tree_lines_nest_by_their_indent() -> None:
    drawn = "├── packages/\n│   ├── a/   first\n│   │   └── x.py  file\n│   └── b/\n└── LICENSE"
    plain = "packages/\n  a/     first\n    x.py\n  b/\nLICENSE"
    expected = ["packages", "packages/a", "packages/a/x.py", "packages/b", "LICENSE"]
    assert tree_paths(drawn) == tree_paths(plain) == expected


@pytest.mark.parametrize("page", PAGES)
def test_links_resolve(page: str) -> None:
    assert broken_links(page) == []


@pytest.mark.parametrize("page", PAGES)
def test_python_blocks_compile_and_import_names_that_exist(page: str) -> None:
    text = read(page)
    for code in blocks(text, "python") + blocks(text, "python run"):
        compile(code, page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        assert unknown_imports(code) == []


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(read(page), "python run")])
def test_blocks_marked_run_do_run(page: str, tmp_path: Path) -> None:
    code = "\n".join(blocks(read(page), "python run"))
    finished = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert finished.returncode == 0, finished.stderr


def linked_pages(page: str) -> set[str]:
    """Pages of the repository that a page links to."""
    folder = (REPOSITORY / page).parent
    targets = (found["target"].partition("#")[0] for found in _LINK.finditer(read(page)))
    paths = {(folder / target).resolve() for target in targets if target.endswith(".md")}
    return {path.relative_to(REPOSITORY).as_posix() for path in paths if path.exists()}


def test_every_page_is_reachable_from_the_map() -> None:
    reached, maps = {"docs/index.md"}, ["docs/index.md"]
    while maps:
        linked = linked_pages(maps.pop()) - reached
        reached |= linked
        # An index.md of a folder is the map of that folder.
        maps += [page for page in linked if page.endswith("/index.md")]
    assert {page for page in PAGES if page.startswith("docs/")} - reached == set()


@pytest.mark.parametrize("page", PAGES)
def test_source_files_that_a_page_names_exist(page: str) -> None:
    sources = [*REPOSITORY.glob("packages/*/src"), REPOSITORY]
    named = {found["path"] for found in _SOURCE_PATH.finditer(_FENCE.sub("", read(page)))}
    assert [path for path in named if not any((root / path).exists() for root in sources)] == []


def test_contributing_says_what_each_dependency_is_for() -> None:
    text = read("CONTRIBUTING.md").lower()
    files = [REPOSITORY / "pyproject.toml", *REPOSITORY.glob("packages/*/pyproject.toml")]
    requirements = []
    for file in files:
        settings = tomllib.loads(file.read_text("utf-8"))
        project = settings.get("project", {})
        requirements += project.get("dependencies", [])
        for group in ("optional-dependencies", "dependency-groups"):
            for entries in (project | settings).get(group, {}).values():
                requirements += entries
    names = {re.split(r"[^\w-]", text, maxsplit=1)[0].lower() for text in requirements}
    unnamed = {name for name in names if not re.search(rf"\b{re.escape(name)}\b", text)}
    assert {name for name in unnamed if not name.startswith("rllm-")} == set()


def test_agents_md_is_short() -> None:
    assert len(read("AGENTS.md").splitlines()) <= 120


def test_a_missing_name_in_a_block_is_found() -> None:
    assert unknown_imports("from rllm_envs import no_such_name") == ["rllm_envs:no_such_name"]
    assert unknown_imports("import rllm_envs\nfrom math import sqrt") == []
