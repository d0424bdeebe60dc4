"""``python -m rllm_envs check MODULE:ENV``: does an environment keep the contract, rule by rule."""

import argparse
import sys
from collections.abc import Callable, Iterable
from typing import Any

import gymnasium

from rllm_envs.checker import CONTRACT, Subject
from rllm_envs.cli.arguments import add_env_options, parse_arguments
from rllm_envs.cli.targets import Make, described, find_target, make_quietly, place_of
from rllm_envs.errors import ContractError, EnvArgumentError

PASS, FAIL, SKIP = "pass", "FAIL", "skip"

CheckedRule = tuple[str, str, str, Callable[[], str]]
"""Name, summary, remedy, and the check: it raises, or returns why it does not apply, or ""."""


def add_command(commands: Any) -> None:
    """Add ``check`` to the parser."""
    parser = commands.add_parser("check", help="check your own environment against the contract")
    parser.add_argument(
        "target",
        metavar="MODULE:ENV",
        help="a class, a function that makes one, or an id: my_module:MyEnv, folder/my_file.py:"
        "MyEnv, my_module:me/My-v0, rllm/Math-v0",
    )
    add_env_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print each rule with its outcome; return 1 if one is broken.

    Raises:
        RllmEnvsError: The target is unknown or cannot be made.
    """
    make = find_target(options.target, options.kind, parse_arguments(options.arguments))
    env = make_quietly(make, options.target)
    rules = list(_rules(env, make, options.target))
    sys.stdout.write(f"{options.target}\n\n")
    width = max(len(name) for name, *_ in rules)
    outcomes = [_report(rule, width) for rule in rules]
    counts = {outcome: outcomes.count(outcome) for outcome in (PASS, FAIL, SKIP)}
    skipped = f", {counts[SKIP]} skipped" if counts[SKIP] else ""
    sys.stdout.write(f"\n{counts[PASS]} rules kept, {counts[FAIL]} broken{skipped}\n")
    return 1 if counts[FAIL] else 0


def _rules(env: Any, make: Make, target: str) -> Iterable[CheckedRule]:
    if isinstance(env, gymnasium.Env):
        return _text_env_rules(env)
    # A PettingZoo environment cannot have been made without PettingZoo.
    if "pettingzoo" in sys.modules:
        import pettingzoo

        from rllm_envs.cli.game_rules import game_rules

        if isinstance(env, pettingzoo.AECEnv | pettingzoo.ParallelEnv):
            return game_rules(env, make)
    raise EnvArgumentError(
        f"{target} makes a {type(env).__name__}; it must be a Gymnasium or PettingZoo environment"
    )


def _text_env_rules(env: gymnasium.Env[Any, Any]) -> list[CheckedRule]:
    base = (
        "base",
        "it is a rllm_envs.TextEnv",
        "derive the class from rllm_envs.TextEnv or SingleTurnEnv",
    )
    try:
        subject = Subject(env)
    except ContractError as error:
        message = str(error)

        def fail() -> str:
            raise ContractError(message)

        return [(*base, fail)]
    others: list[CheckedRule] = [
        (rule.name, rule.summary, rule.remedy, lambda rule=rule: rule.check(subject))
        for rule in CONTRACT
    ]
    return [(*base, lambda: ""), *others]


def _report(rule: CheckedRule, width: int) -> str:
    name, summary, remedy, check = rule
    outcome, notes = PASS, []
    try:
        reason = check()
        if reason:
            outcome, notes = SKIP, [f"skipped: {reason}"]
    except ContractError as error:
        # Where the contract was broken by an exception, its place is worth more than ours.
        place = place_of(error.__cause__) if error.__cause__ is not None else ""
        outcome, notes = FAIL, [" ".join(str(error).split()) + place, f"remedy: {remedy}"]
    except Exception as error:
        outcome, notes = FAIL, [f"it raises {described(error)}", f"remedy: {remedy}"]
    lines = [f"  {outcome}  {name:<{width}}  {summary}"]
    lines += [f"{'':8}{'':{width}}  {note}" for note in notes]
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write("\n".join(lines).encode(encoding, "replace").decode(encoding) + "\n")
    sys.stdout.flush()
    return outcome
