"""`opscope status`: show whether the programs of an environment attach by themselves.

For running processes, see `opscope ps`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from opscope.cli._options import Options
from opscope.errors import OpscopeError
from opscope.installation import choice, path_file, payload
from opscope.installation.environment import Environment

SUMMARY = "Show what is installed where."
_TEXT = """
    Show whether `opscope install` with the same options was run, and whether it
    works.

    Exits with status 1 if it was not run, or does not work.
"""


def main(arguments: Sequence[str]) -> None:
    """Prints it; exits with status 1 unless everything is installed and works."""
    parser = Options("status", "[OPTIONS]", _TEXT)
    choice.add_options(parser)
    chosen, _ = choice.parsed(parser, arguments)
    if chosen.payload:
        said = payload.describe(chosen.payload)
        print(f"{chosen.payload}: {said or 'no payload'}")
        sys.exit(0 if said else 1)
    works = [_works(environment) for environment in chosen.environments()]
    if not all(works):
        sys.exit(1)


def _works(environment: Environment) -> bool:
    try:
        package = path_file.read(environment.site)
        if package is None:
            why = f" ({environment.refusal})" if environment.refusal else ""
            print(f"{environment.title}: not installed{why}")
            return bool(environment.refusal)
        version = choice.try_out(environment)
    except OpscopeError as error:
        print(f"{environment.title}: {error}")
        return False
    print(f"{environment.title}: installed, opscope {version}")
    return True
