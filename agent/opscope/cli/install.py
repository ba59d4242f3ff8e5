"""``opscope install``: lets the programs of an environment or a container attach by themselves.

What is written where stands in installation/; what then happens in a program, in attachment/.
"""

from __future__ import annotations

import os
import sys

import click

import opscope
from opscope.installation import choice, path_file, payload
from opscope.installation.environment import Environment, current, look_at


@click.command("install", short_help="Let programs attach by themselves.")
@choice.environments
@click.option("--python", "pythons", multiple=True, metavar="PATH", help=choice.PYTHON_HELP)
@click.option("--cffi", "wheels", multiple=True, metavar="PATH", help=choice.CFFI_HELP)
def command(chosen: choice.Chosen, pythons: tuple[str, ...], wheels: tuple[str, ...]) -> None:
    """Lets every numerical program of an environment be observed, without `opscope run`.

    \b
        opscope install                      the environment of this command
        opscope install --venv /srv/app/env  another one; may be repeated
        opscope install --system             all of this host's /usr/bin/python3...
        opscope install --payload /opt/opscope

    The last writes one directory for containers and read-only images; a program that runs with
    PYTHONPATH=/opt/opscope/site OPSCOPE_ATTACH=1 is observed. Repeating changes nothing.
    OPSCOPE_ENABLED=0 switches a program's observation off, `opscope uninstall` takes all back.
    """
    if (pythons or wheels) and not chosen.payload:
        raise click.UsageError("--python and --cffi go with --payload")
    if chosen.payload:
        given = [_usable(look_at(path)) for path in pythons]
        payload.write(chosen.payload, given or ([] if wheels else [_usable(current())]), wheels)
        place = os.path.abspath(chosen.payload)
        click.echo(f"{place}: {payload.describe(place)}")
        click.echo(f"observe a program: PYTHONPATH={place}/site OPSCOPE_ATTACH=1 python ...")
        return
    failed = False
    for environment in chosen.environments():
        try:
            if environment.refusal and chosen.system:
                click.echo(f"{environment.title}: left alone, {environment.refusal}")
            else:
                _install(_usable(environment))
        except opscope.OpscopeError as error:
            # One that cannot be had keeps no other from being had.
            click.echo(f"Error: {error}", err=True)
            failed = True
    if failed:
        sys.exit(1)


def _install(environment: Environment) -> None:
    package = environment.package or os.path.dirname(os.path.abspath(opscope.__file__))
    is_new = path_file.put(environment.site, package)
    try:
        version = choice.try_out(environment)
    except Exception:
        if is_new:
            path_file.take(environment.site)
        raise
    done = "installed" if is_new else "was installed already"
    click.echo(f"{environment.title}: {done}, opscope {version} ({path_file.NAME})")


def _usable(environment: Environment) -> Environment:
    if environment.refusal:
        raise opscope.OpscopeError(f"{environment.title}: {environment.refusal}")
    return environment
