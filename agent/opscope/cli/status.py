"""``opscope status``: whether the programs of an environment attach by themselves.

Of processes that run now, ``opscope ps`` tells.
"""

from __future__ import annotations

import sys

import click

from opscope.errors import OpscopeError
from opscope.installation import choice, path_file, payload
from opscope.installation.environment import Environment


@click.command("status", short_help="Say what is installed where.")
@choice.environments
def command(chosen: choice.Chosen) -> None:
    """Says whether `opscope install` with the same options has been done, and whether it works.

    Exits with 1 where it has not or does not.
    """
    if chosen.payload:
        said = payload.describe(chosen.payload)
        click.echo(f"{chosen.payload}: {said or 'no payload is there'}")
        sys.exit(0 if said else 1)
    works = [_works(environment) for environment in chosen.environments()]
    if not all(works):
        sys.exit(1)


def _works(environment: Environment) -> bool:
    try:
        package = path_file.read(environment.site)
        if package is None:
            why = f" ({environment.refusal})" if environment.refusal else ""
            click.echo(f"{environment.title}: not installed{why}")
            return bool(environment.refusal)
        version = choice.try_out(environment)
    except OpscopeError as error:
        click.echo(f"{environment.title}: {error}")
        return False
    click.echo(f"{environment.title}: installed, opscope {version}")
    return True
