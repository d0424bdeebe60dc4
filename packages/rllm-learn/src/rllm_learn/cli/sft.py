"""`rllm sft`: supervised fine-tuning from the command line."""

from __future__ import annotations

import click

from rllm_agents.cli.overrides import expand_shorthands

HELP = """Fine-tune a model on conversations: it learns to say what the assistant says in them.

\b
  rllm sft data=chats.jsonl model=path/to/model
  rllm sft data=chats.jsonl num_updates=500 learner.learning_rate=1e-4 run_dir=runs/mine
  rllm sft --config-name sft_tiny      make the tiny model that ships with the package again

Each row of the data is a JSON object with a list `messages`, each message with a `role` (system,
user, assistant or tool) and a `content`. The result is run_dir/model, which `model=` of
`rllm train` and `rllm eval` takes.

\b
All settings with defaults and meaning: docs/configuration.md, or
  rllm sft --show-config
"""


@click.command("sft", help=HELP, short_help="Fine-tune a model on conversations.")
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
@click.option(
    "--config-name",
    default="sft",
    show_default=True,
    help="Which file of rllm_learn.config to start from.",
)
@click.option("--show-config", is_flag=True, help="Print the resolved settings and stop.")
def sft(settings: tuple[str, ...], config_name: str, show_config: bool) -> None:
    """Run `train_supervised` with settings from the command line."""
    overrides = expand_shorthands(settings)
    # Loading torch takes seconds; settings are checked before.
    from rllm_learn.config import SFTConfig, load_config, to_settings

    config = to_settings(load_config(config_name, overrides), SFTConfig, config_name=config_name)
    if show_config:
        from omegaconf import OmegaConf

        click.echo(OmegaConf.to_yaml(OmegaConf.structured(config)))
        return
    from transformers.utils.logging import disable_progress_bar

    from rllm_learn.sft import train_supervised

    disable_progress_bar()  # or each file of a model draws a bar of its own
    summary = train_supervised(config)
    click.echo(
        f"loss {summary['final_loss']:.3f} after {summary['updates']} updates, "
        f"{summary['seconds']:.0f} s"
    )
    click.echo(f"model: {summary['model']}")
