"""``opscope uninstall``: takes away what ``opscope install`` has put in place, and nothing else."""

from __future__ import annotations

import click

from opscope.installation import choice, path_file, payload


@click.command("uninstall", short_help="Undo install.")
@choice.environments
def command(chosen: choice.Chosen) -> None:
    """Takes back what `opscope install` with the same options has done.

    The files are then as they were before; what opscope has not written is not touched. Programs
    that run are observed to their end.
    """
    if chosen.payload:
        done = payload.remove(chosen.payload)
        click.echo(f"{chosen.payload}: {'removed' if done else 'no payload is there'}")
        return
    for environment in chosen.environments():
        done = path_file.take(environment.site)
        click.echo(f"{environment.title}: {'uninstalled' if done else 'was not installed'}")
