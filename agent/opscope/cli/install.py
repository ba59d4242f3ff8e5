"""`opscope install`: make the programs of an environment or a container attach by themselves.

installation/ writes the files; attachment/ runs in the programs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import NamedTuple

import opscope
from opscope.cli._options import Options
from opscope.installation import choice, ownership, path_file, payload, runtime_directory
from opscope.installation.environment import Environment, current, look_at
from opscope.installation.interruption import Interruption, obeyed, report

_OWN_PACKAGE = os.path.dirname(os.path.abspath(opscope.__file__))


SUMMARY = "Attach to the programs of an environment automatically."
_TEXT = """
    Observe every numerical program of an environment, without `opscope run`.

        opscope install                      the environment of this command
        opscope install --venv /srv/app/env  another environment; repeatable
        opscope install --system             every /usr/bin/python3* of this host
        opscope install --payload /opt/opscope

    The last form writes a directory for containers and read-only images: opscope
    observes a program that runs with PYTHONPATH=/opt/opscope/site
    OPSCOPE_ATTACH=1.

    Installing again changes nothing. Ctrl-C leaves nothing installed. `opscope
    uninstall` undoes all. OPSCOPE_ENABLED=0 turns observation of a program off.

    As root, opscope must be in an environment that only root can write to;
    --system then has systemd-tmpfiles make the directory of all users' segments.
"""


class _Contents(NamedTuple):
    """What a payload is made of, as the arguments say."""

    pythons: list[str]
    cffi: list[str]
    wheels: list[str]


def main(arguments: Sequence[str]) -> None:
    """Installs as the arguments say and reports it; exits with status 1 on failure."""
    parser = Options("install", "[OPTIONS]", _TEXT)
    choice.add_options(parser)
    parser.add_option(
        "--python",
        action="append",
        metavar="PATH",
        help="Interpreter that the payload supports; repeatable; default: this one.",
    )
    parser.add_option(
        "--cffi",
        action="append",
        metavar="PATH",
        help="Wheel of cffi for another Python, or a directory of wheels; repeatable.",
    )
    parser.add_option(
        "--wheel",
        action="append",
        metavar="PATH",
        help="Wheel of this opscope for another kind of machine; repeatable.",
    )
    chosen, given = choice.parsed(parser, arguments)
    contents = _Contents(given.python or [], given.cffi or [], given.wheel or [])
    if any(contents) and not chosen.payload:
        parser.error("--python, --cffi and --wheel require --payload")
    with obeyed("installed") as interruption:
        if chosen.payload:
            _write_payload(chosen.payload, contents, interruption)
            return
        said, errors = _install_all(chosen, interruption)
    # Reports results only after they can no longer be undone.
    report(said, errors)


def _write_payload(place: str, contents: _Contents, interruption: Interruption) -> None:
    pythons, cffi, wheels = contents
    with interruption.allowed():
        # All files to copy, and all files that run before.
        own = ownership.files_of(current(), _OWN_PACKAGE)
        _refuse_others([*own, *pythons, *cffi, *wheels])
        given = [_usable(look_at(path)) for path in pythons]
        given = given or ([] if cffi else [_usable(current())])
        for environment in given:
            _refuse_others(ownership.files_of(environment, _OWN_PACKAGE))
    payload.write(place, given, cffi, wheels, interruption.allowed)
    place = os.path.abspath(place)
    print(f"{place}: {payload.describe(place)}")
    print(f"observe a program: PYTHONPATH={place}/site OPSCOPE_ATTACH=1 python ...")


def _install_all(
    chosen: choice.Chosen, interruption: Interruption
) -> tuple[list[str], list[opscope.OpscopeError]]:
    """Reports and errors: an environment that fails does not keep others from being installed.
    Any other exception undoes all installations."""
    said: list[str] = []
    errors: list[opscope.OpscopeError] = []
    is_any_installed = False

    def may_run(python: str) -> bool:
        try:
            _refuse_others([python])
        except opscope.OpscopeError as error:
            errors.append(error)
            return False
        return True

    with ExitStack() as undo:
        with interruption.allowed():
            own = [*ownership.files_of(current(), _OWN_PACKAGE)]
            if chosen.system:
                _refuse_others(own)
            environments = chosen.environments(may_run)
        for environment in environments:
            try:
                if environment.refusal and chosen.system:
                    said.append(f"{environment.title}: skipped, {environment.refusal}")
                else:
                    # A user's own files are run by that user anyway.
                    owner = 0 if chosen.system else _owner_of(_usable(environment))
                    _refuse_others(own, owner)
                    said.append(_install(_usable(environment), owner, interruption, undo))
                    is_any_installed = True
            except opscope.OpscopeError as error:
                errors.append(error)
        if chosen.system and os.geteuid() == 0 and is_any_installed:
            try:
                done = runtime_directory.put()
                if done:
                    undo.callback(runtime_directory.take)
                    said.append(done)
            except opscope.OpscopeError as error:
                errors.append(error)
        interruption.check()
        undo.pop_all()
    return said, errors


def _install(
    environment: Environment, owner: int, interruption: Interruption, undo: ExitStack
) -> str:
    package = environment.package or _OWN_PACKAGE
    _refuse_others(ownership.files_of(environment, package), owner)
    before = path_file.read(environment.site)
    undo.callback(path_file.restore, environment.site, before)
    try:
        is_new = path_file.put(environment.site, package)
        with interruption.allowed():
            version = choice.try_out(environment)
    except Exception:
        path_file.restore(environment.site, before)
        raise
    done = "installed" if is_new else "was installed already"
    return f"{environment.title}: {done}, opscope {version} ({path_file.NAME})"


def _owner_of(environment: Environment) -> int:
    try:
        return os.stat(environment.site).st_uid
    except OSError as error:
        raise opscope.OpscopeError(f"{environment.site}: {error.strerror}") from error


def _refuse_others(files: Iterable[str], owner: int = 0) -> None:
    """Raises OpscopeError if root installs files that users other than root and `owner` may
    change."""
    if os.geteuid() == 0:
        ownership.Ownership({0, owner}).refuse(files)


def _usable(environment: Environment) -> Environment:
    if environment.refusal:
        raise opscope.OpscopeError(f"{environment.title}: {environment.refusal}")
    return environment
