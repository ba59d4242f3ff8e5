"""The command `opscope`: each subcommand is a file of this folder with a click command `command`.

A subcommand's file is imported only when it is asked for. What the user did wrong, and what Opscope
raises on purpose, is one line on standard error; so is anything unforeseen, whose traceback comes
with OPSCOPE_DEBUG=1.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from typing import Any

import click

from opscope import OpscopeError, __version__


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(module.name for module in pkgutil.iter_modules(__path__))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = importlib.import_module(f"{__name__}.{cmd_name}").command
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except OpscopeError as error:
            raise click.ClickException(str(error)) from error
        except BrokenPipeError:
            # The reader of our output left; Python's own flush at exit must not complain either.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(0)
        except Exception as error:
            if os.environ.get("OPSCOPE_DEBUG", "") not in ("", "0"):
                raise
            text = f"{type(error).__name__}: {error}; OPSCOPE_DEBUG=1 shows where"
            raise click.ClickException(text) from error


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="opscope")
def main() -> None:
    """See what Python numerics spend their time on, operator by operator."""
