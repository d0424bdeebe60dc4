"""`rllm train`: reinforcement learning from the command line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from rllm_agents.cli.overrides import expand_shorthands

HELP = """Train a language agent by reinforcement learning.

Without arguments it trains the tiny model that ships with the package to call a calculator: a few
minutes on two CPU cores, nothing downloaded. Everything goes to the run directory: curve.png,
metrics.jsonl, TensorBoard events, episodes to read, checkpoints, the trained adapter.

\b
Settings are KEY=VALUE, for example
  seed=3 run_dir=runs/mine        where, and with which random numbers
  env=rllm/Arithmetic-v0          any registered Gymnasium text environment
  env.kwargs.digits=2             its own arguments
  env=rllm/Math-v0 env.dataset=train.jsonl env.eval_dataset=test.jsonl
  model=path/to/model             a Hugging Face model directory or hub name
  num_steps=40 tasks_per_step=32 algorithm.group_size=8
  learner.learning_rate=1e-3 model.lora_rank=0     all parameters instead of LoRA
  algorithm.loss=my_losses:shaped   a loss registered in my_losses.py, here or installed

\b
All settings with defaults and meaning: docs/configuration.md, or
  rllm train --show-config
"""


@click.command("train", help=HELP, short_help="Train an agent by reinforcement learning.")
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--resume", is_flag=True, help="Go on with the run in run_dir=DIR.")
@click.option(
    "--config-name",
    default="grpo_trainer",
    show_default=True,
    help="Which file of rllm_learn.config to start from.",
)
@click.option("--show-config", is_flag=True, help="Print the resolved settings and stop.")
def train(settings: tuple[str, ...], resume: bool, config_name: str, show_config: bool) -> None:
    """Run `AgentTrainer` with settings from the command line."""
    overrides = expand_shorthands(settings)
    # A setting may name a module of the user's own, as for `python script.py`.
    if not {"", str(Path.cwd())} & set(sys.path):
        sys.path.insert(0, str(Path.cwd()))
    # Loading torch takes seconds; settings are checked before.
    from rllm_learn.config import TrainerConfig, load_config, to_settings

    if resume:
        config = _saved_settings(config_name, overrides)
    else:
        composed = load_config(config_name, overrides)
        config = to_settings(composed, TrainerConfig, config_name=config_name)
    if show_config:
        from omegaconf import OmegaConf

        click.echo(OmegaConf.to_yaml(OmegaConf.structured(config)))
        return
    from transformers.utils.logging import disable_progress_bar

    from rllm_learn.interrupts import terminate_like_ctrl_c
    from rllm_learn.trainer import AgentTrainer

    terminate_like_ctrl_c()
    disable_progress_bar()  # or each file of a model draws a bar of its own
    _print_summary(AgentTrainer(config=config, resume=resume).train())


def _saved_settings(config_name: str, overrides: list[str]) -> Any:
    """Return the settings that a run was started with, and the overrides on top."""
    from omegaconf import OmegaConf

    from rllm_learn import run_dir
    from rllm_learn.config import TrainerConfig, load_config, to_settings
    from rllm_learn.errors import ConfigError

    given = load_config(config_name, overrides)
    if given.run_dir is None:
        raise ConfigError("--resume needs the run to go on with: run_dir=DIR")
    saved = run_dir.saved_config(Path(given.run_dir))
    for override in overrides:
        key = override.partition("=")[0].lstrip("+")
        OmegaConf.update(saved, key, OmegaConf.select(given, key))
    plain = OmegaConf.to_container(saved)
    return to_settings(plain, TrainerConfig, config_name=config_name)


def _print_summary(summary: dict[str, Any]) -> None:
    before, after = summary["pass_at_1_before"], summary["pass_at_1_after"]
    click.echo(
        f"held-out pass@1 {before:.3f} -> {after:.3f} in {summary['steps']} steps, "
        f"{summary['seconds']:.0f} s ({summary['cpu_seconds']:.0f} CPU s)"
    )
    click.echo(f"curve:    {summary['run_dir']}/curve.png")
    click.echo(f"episodes: {summary['run_dir']}/episodes/")
    click.echo(f"policy:   {summary['policy']}")
