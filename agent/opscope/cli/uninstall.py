"""`opscope uninstall`: remove the files of `opscope install`, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack

from opscope.cli._options import Options
from opscope.errors import OpscopeError
from opscope.installation import choice, path_file, payload, runtime_directory
from opscope.installation.interruption import Interruption, obeyed, report

SUMMARY = "Undo install."
_TEXT = """
    Undo `opscope install` with the same options.

    Restores the files, and does not touch what opscope did not write. Running
    programs stay observed until they end.
"""


def main(arguments: Sequence[str]) -> None:
    """Uninstalls as the arguments say and reports it; exits with status 1 on failure."""
    parser = Options("uninstall", "[OPTIONS]", _TEXT)
    choice.add_options(parser)
    chosen, _ = choice.parsed(parser, arguments)
    with obeyed("uninstalled") as interruption:
        if chosen.payload:
            done = payload.remove(chosen.payload)
            said = [f"{chosen.payload}: {'removed' if done else 'no payload'}"]
            errors: list[OpscopeError] = []
        else:
            said, errors = _uninstall_all(chosen, interruption)
    report(said, errors)


def _uninstall_all(
    chosen: choice.Chosen, interruption: Interruption
) -> tuple[list[str], list[OpscopeError]]:
    """Reports and errors. Any other exception puts all files back."""
    said: list[str] = []
    errors: list[OpscopeError] = []
    with ExitStack() as undo:
        with interruption.allowed():
            environments = chosen.environments()
        for environment in environments:
            try:
                before = path_file.read(environment.site)
                undo.callback(path_file.restore, environment.site, before)
                done = path_file.take(environment.site)
                said.append(
                    f"{environment.title}: {'uninstalled' if done else 'was not installed'}"
                )
            except OpscopeError as error:
                errors.append(error)
        interruption.check()
        undo.pop_all()
    if chosen.system and os.geteuid() == 0:
        try:
            done_there = runtime_directory.take()
            said += [done_there] if done_there else []
        except OpscopeError as error:
            errors.append(error)
    return said, errors
