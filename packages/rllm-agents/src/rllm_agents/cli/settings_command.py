"""A command whose help lists the settings that it takes."""

from __future__ import annotations

from typing import Any, ClassVar

import click

from rllm_agents.cli.overrides import settings_table


class SettingsCommand(click.Command):
    """Shows the settings below the options. Subclasses name the class of their settings."""

    schema: ClassVar[type[Any]]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write options, then all settings with default and meaning."""
        super().format_options(ctx, formatter)
        with formatter.section("Settings and their defaults"):
            formatter.write_dl(settings_table(self.schema), col_max=40)
