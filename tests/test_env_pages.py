"""The pages of docs/envs/ name every environment, and stale ones are noticed."""

from __future__ import annotations

import pytest
import write_env_pages

from rllm_envs.cli.listing import all_rows


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return write_env_pages.pages()


def test_each_environment_is_in_the_table_and_on_the_page_of_its_category(pages):
    for row in all_rows():
        assert f"| `{row.id}` | {row.kind} |" in pages["index.md"]
        heading = row.id if row.kind == "gymnasium" else f"{row.id} ({row.kind})"
        assert pages[f"{row.category}.md"].count(f"\n## {heading}\n") == 1
    assert set(pages) == {"index.md", *(f"{row.category}.md" for row in all_rows())}


def test_a_page_has_docstring_signature_and_example(pages):
    section = pages["tool_use.md"].partition("\n## rllm/Calculator-v0\n")[2]
    section = section.partition("\n## ")[0]
    assert "\nCompute a product in a few turns" in section
    assert "\n### Rewards\n1 for the exact value, 0 otherwise." in section
    assert "**Signature:** `digits=2, operators='*', num_terms=2, max_turns=3, " in section
    example = section.partition("played by the oracle at seed 0:\n\n")[2]
    assert example.startswith("    What is ")
    assert example.rstrip().endswith("    [end, reward 1]")


def test_a_preset_names_the_first_id_of_its_class(pages):
    assert "`rllm/PythonCode-v0` with `num_steps=5, num_tests=12`: " in pages["coding.md"]


def test_long_examples_are_cut_and_no_line_is_too_long(pages):
    for text in pages.values():
        run = 0
        for line in text.splitlines():
            run = run + 1 if line.startswith("    ") or not line else 0
            assert run <= write_env_pages.MAX_LINES + 3
            assert line == line.rstrip()
    game = pages["multi_agent.md"].partition("\n## rllm/ConnectFour-v0 (aec)\n")[2]
    assert " more lines)\n" in game.partition("\n## ")[0]


def test_pages_that_differ_are_missing_or_are_too_many_are_found_and_mended(tmp_path, pages):
    folder = tmp_path / "envs"
    assert write_env_pages.stale(folder, pages) == sorted(pages)
    write_env_pages.write(folder, pages)
    assert write_env_pages.stale(folder, pages) == []
    (folder / "index.md").write_text("old", "utf-8")
    (folder / "gone.md").write_text("old", "utf-8")
    assert write_env_pages.stale(folder, pages) == ["gone.md", "index.md"]
    write_env_pages.write(folder, pages)
    assert write_env_pages.stale(folder, pages) == []
    assert {path.name for path in folder.iterdir()} == set(pages)
