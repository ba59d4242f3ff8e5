"""All subcommands as one click group, if the extra `agent` is installed."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import click

from opscope import OpscopeError, __version__
from opscope.cli import _commands


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return _commands.names()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        plain = _commands.without_extra(cmd_name)
        if plain is not None:
            return _wrapped(cmd_name, plain)
        command: click.Command = importlib.import_module(_commands.module(cmd_name)).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in self.list_commands(ctx):
            ctx.fail(_commands.no_such(args[0]))
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except OpscopeError as error:
            raise click.ClickException(str(error)) from error
        except BrokenPipeError:
            _commands.leave_broken_pipe()
            ctx.exit(0)
        except Exception as error:
            raise click.ClickException(_commands.unforeseen(error)) from error


def _wrapped(name: str, module: ModuleType) -> click.Command:
    """A click command that passes its arguments on unparsed."""
    return click.Command(
        name,
        callback=module.main,
        params=[click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED)],
        add_help_option=False,
        context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
        short_help=module.SUMMARY,
    )


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="opscope")
def main() -> None:
    """Show where Python numerics spend their time, operator by operator."""
