"""`rllm dpo`: direct preference optimization on a file, from the command line."""

from __future__ import annotations

import click

from rllm_agents.cli.overrides import expand_shorthands

HELP = """Train a model on preferences: what was chosen becomes more likely than what was rejected.

\b
  rllm dpo data=preferences.jsonl model=path/to/model
  rllm dpo data=runs/mine/episodes.jsonl beta=0.3 num_updates=200 run_dir=runs/better

Each row of the data is a JSON object with `prompt`, `chosen` and `rejected`, each a text or a list
of messages; or an episode as `rllm eval samples_per_task=8` writes it, where those of one task are
paired by their rewards. The result is run_dir/model, which `model=` of `rllm train` and `rllm eval`
takes. Pairs that the policy samples while it learns: rllm train algorithm=dpo.

\b
All settings with defaults and meaning: docs/configuration.md, or
  rllm dpo --show-config
"""


@click.command("dpo", help=HELP, short_help="Train a model on a file of preferences.")
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--show-config", is_flag=True, help="Print the resolved settings and stop.")
def dpo(settings: tuple[str, ...], show_config: bool) -> None:
    """Run `train_on_preferences` with settings from the command line."""
    overrides = expand_shorthands(settings)
    # Loading torch takes seconds; settings are checked before.
    from rllm_learn.config import DPOFileConfig, load_config, to_settings

    config = to_settings(load_config("dpo", overrides), DPOFileConfig, config_name="dpo")
    if show_config:
        from omegaconf import OmegaConf

        click.echo(OmegaConf.to_yaml(OmegaConf.structured(config)))
        return
    from transformers.utils.logging import disable_progress_bar

    from rllm_learn.preference_tuning import train_on_preferences

    disable_progress_bar()  # or each file of a model draws a bar of its own
    summary = train_on_preferences(config)
    click.echo(
        f"loss {summary['final_preference_loss']:.3f}, {summary['final_preferred']:.0%} of pairs "
        f"as preferred, after {summary['updates']} updates, {summary['seconds']:.0f} s"
    )
    click.echo(f"model: {summary['model']}")
