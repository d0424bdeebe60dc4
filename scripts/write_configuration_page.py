"""Write docs/configuration.md from the settings' own types, defaults and docstrings.

uv run python scripts/write_configuration_page.py            # write the page
uv run python scripts/write_configuration_page.py --check    # exit 1 where it is out of date
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from rllm_agents.cli.eval_settings import EvalSettings
from rllm_agents.cli.overrides import settings_table
from rllm_learn.algorithms import ALGORITHMS, PolicyGradientConfig
from rllm_learn.config import DPOFileConfig, SFTConfig, TrainerConfig

PAGE = Path(__file__).parent.parent / "docs" / "configuration.md"

HEAD = """# Configuration

This page is written by `scripts/write_configuration_page.py` from the settings' own definitions.

Settings are `KEY=VALUE` arguments of `rllm train`, `rllm sft`, `rllm dpo` and `rllm eval`. An
unknown key is refused and the nearest named; so is a value of another type or out of its range.
`env=`, `model=` and `engine=` are short for `env.id=`, `model.path=` and `engine.name=`. `rllm
train`, `rllm sft` and `rllm dpo` compose their settings with Hydra from the YAML files of
`rllm_learn/config/`, of which the first two take another with `--config-name`; `--show-config`
prints the result. `rllm eval --help` lists its own.
"""


def page() -> str:
    """Return the page's text."""
    lines = [HEAD, "## rllm train", ""]
    lines += _table("", TrainerConfig, leave_out=("algorithm.name",))
    lines += ["### Every algorithm", ""]
    lines += _table("algorithm.", PolicyGradientConfig, leave_out=("name",))
    shared = set(settings_table(PolicyGradientConfig))
    for name, (settings, _) in ALGORITHMS.items():
        lines += [f"### algorithm={name}", ""]
        lines += _table("algorithm.", settings, leave_out=("name",), said=shared)
    lines += ["## rllm sft", "", *_table("", SFTConfig)]
    lines += ["## rllm dpo", "", *_table("", DPOFileConfig)]
    lines += ["## rllm eval", "", *_table("", EvalSettings)]
    return "\n".join(lines).rstrip() + "\n"


def _table(
    prefix: str,
    schema: type[Any],
    *,
    leave_out: tuple[str, ...] = (),
    said: Collection[tuple[str, str]] = (),
) -> Iterator[str]:
    """Yield the rows of a table, without those that `said` holds."""
    yield "| key | default | meaning |"
    yield "|---|---|---|"
    for assignment, meaning in settings_table(schema):
        key, _, default = assignment.partition("=")
        if key not in leave_out and (assignment, meaning) not in said:
            yield f"| `{prefix}{key}` | `{default}` | {meaning.replace('|', chr(92) + '|')} |"
    yield ""


def main() -> int:
    """Write or check the page; return the exit code."""
    if "--check" in sys.argv[1:]:
        if PAGE.read_text(encoding="utf-8") == page():
            return 0
        print(f"{PAGE.name} is out of date: run `make docs`", file=sys.stderr)
        return 1
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
