"""The payload: one directory with everything that an observed process needs, copyable anywhere.

    DIR/site/           goes onto PYTHONPATH, with OPSCOPE_ATTACH=1
    DIR/opscope/        the light part of the package, without its C
    DIR/machines/       its C, a folder for each kind of machine: x86_64-linux-gnu, ...
    DIR/cffi/           cffi's extension module, one for each kind of machine and version of Python
    DIR/payload.json    a description, and a digest of each file

Bytecode is compiled for each selected interpreter, and stays valid wherever the directory is
copied. DIR/site is written last and removed first: if it exists, the payload is complete.
payload_swap.py replaces one payload by another; environment.py queries interpreters.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import TypedDict

import opscope
from opscope import _native
from opscope.attachment.entry import THIS_MACHINE
from opscope.errors import OpscopeError
from opscope.installation import payload_swap
from opscope.installation.environment import Environment

LISTING = "payload.json"

_ORDER = ("opscope", "machines", "cffi", LISTING, "site")
# Modules for the host side, and modules that only programs written for opscope import.
_LEFT_OUT = re.compile(
    r"(agent|bench|cli|fleet|installation|tensor|include|shipped|__pycache__)|demo.*|replace_file\.py"
    r"|.*\.pyi|.*tensor.*\.so"
)
_LIBRARY = re.compile(r"opscope/([\w.]+\.so)")
_WHEEL = re.compile(r"opscope-([\w.]+)-\w+-abi3-(many|musl)linux_\d+_\d+_(\w+)\.whl")
_BACKEND = re.compile(r"(?:.*/)?(_cffi_backend\.cpython-(\d)(\d+)-([\w-]+)\.so)")
# The package requires 2.0; a later cffi with another interface rejects itself.
_OLDEST_CFFI = (2, 0)
_ASK_CFFI = "import _cffi_backend as b; print(b.__version__); print(b.__file__)"
_COMPILE = (
    *("-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"),
    *("-s", ".", "-p", "opscope-payload", "."),
)


class _Listing(TypedDict):
    """payload.json."""

    opscope: str
    machines: dict[str, list[str]]
    """The versions of Python, by kind of machine."""
    made: bool
    """Whether write() created the directory."""
    files: dict[str, str]
    """SHA-256 of each file, by path."""


def write(
    place: str,
    environments: Sequence[Environment],
    cffi: Sequence[str],
    wheels: Sequence[str] = (),
    interruptible: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> None:
    """Writes the payload to `place` atomically, replacing an earlier one.

    It supports the Pythons of `environments`, each of which must have cffi, and those for which
    `cffi` has the extension module: wheels of cffi, or directories of wheels. It supports this kind
    of machine, and those of `wheels`, which are wheels of this opscope. Raises OpscopeError if one
    of these is missing, `place` contains anything else, or writing fails. Slow steps run within
    `interruptible()`, which may raise.
    """
    target = Path(place).absolute()
    missing = [path for path in (target, *target.parents) if not path.exists()]
    try:
        target.mkdir(parents=True, exist_ok=True)
        with payload_swap.claimed(target):
            try:
                payload_swap.undo(target, _ORDER)
                is_made = _listing(target)["made"] if _existing(target) else bool(missing)
                new = payload_swap.begin(target)
                with interruptible():
                    _fill(new, environments, cffi, wheels, is_made)
                payload_swap.swap(target, _ORDER)
            except BaseException:
                payload_swap.undo(target, _ORDER)
                raise
    except BaseException as error:
        for path in missing:
            with suppress(OSError):
                path.rmdir()
        if isinstance(error, (OSError, subprocess.SubprocessError)):
            raise OpscopeError(f"cannot write the payload {place}: {error}") from error
        raise


def remove(place: str) -> bool:
    """Removes the payload, and the directory if write() created it; False without a payload.

    Raises OpscopeError if a file has been changed.
    """
    target = Path(place).absolute()
    if not target.is_dir():
        return _existing(target)
    try:
        with payload_swap.claimed(target):
            payload_swap.undo(target, _ORDER)
            if not _existing(target):
                return False
            is_made = _listing(target)["made"]
            try:
                payload_swap.begin(target)
                payload_swap.swap(target, _ORDER)
            except BaseException:
                payload_swap.undo(target, _ORDER)
                raise
            if is_made:
                target.rmdir()
    except OSError as error:
        raise OpscopeError(f"cannot remove the payload {place}: {error}") from error
    return True


def describe(place: str) -> str | None:
    """A description of the payload; None without one.

    Raises OpscopeError if its files have been changed.
    """
    target = Path(place)
    if not _existing(target):
        return None
    said = _listing(target)
    supported = "; ".join(
        f"Python {', '.join(pythons)} on {machine}" for machine, pythons in said["machines"].items()
    )
    return f"payload of opscope {said['opscope']} for {supported}"


def _existing(target: Path) -> bool:
    """Whether an unchanged payload exists. Raises OpscopeError if something else does."""
    if not target.exists():
        return False
    if not target.is_dir():
        raise OpscopeError(f"{target} is not a directory")
    if (target / payload_swap.UNFINISHED).exists():
        raise OpscopeError(
            f"an `opscope install` of {target} did not finish; repeat it, or uninstall"
        )
    if not (target / LISTING).exists():
        if any(target.iterdir()):
            raise OpscopeError(
                f"{target} contains something other than a payload; choose an empty directory"
            )
        return False
    listed = _listing(target)["files"]
    found = _digests(target)
    # Python itself adds bytecode where it can write.
    changed = [name for name in found.keys() - listed.keys() if "/__pycache__/" not in name]
    changed += [name for name, digest in listed.items() if found.get(name) != digest]
    if changed:
        names = ", ".join(sorted(changed)[:5])
        raise OpscopeError(
            f"{target} was changed after opscope wrote it ({names}); restore or remove it yourself"
        )
    return True


def _listing(target: Path) -> _Listing:
    try:
        said = json.loads((target / LISTING).read_text())
        if not isinstance(said["files"], dict) or not isinstance(said["machines"], dict):
            raise ValueError("not in the form that opscope writes")
        return _Listing(
            opscope=str(said["opscope"]),
            machines=said["machines"],
            made=bool(said["made"]),
            files=said["files"],
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise OpscopeError(f"cannot read {target / LISTING}: {error}") from error


def _fill(
    made: Path,
    environments: Sequence[Environment],
    cffi: Sequence[str],
    wheels: Sequence[str],
    is_made: bool,
) -> None:
    package = Path(opscope.__file__).parent
    shutil.copytree(package, made / "opscope", ignore=_left_out)
    own = made / "machines" / THIS_MACHINE
    own.mkdir(parents=True)
    for library in Path(_native.__file__).parent.glob("*.so"):
        if not _LEFT_OUT.fullmatch(library.name):
            shutil.copy(library, own)
    for path in wheels:
        _unpack_wheel(Path(path), made / "machines")
    # A copy instead of a link, since copying tools treat links differently.
    shutil.copytree(package / "attachment" / "site", made / "site", ignore=_left_out)
    (made / "cffi").mkdir()
    for path in cffi:
        _unpack_cffi(Path(path), made / "cffi")
    for environment in environments:
        if "{}.{}".format(*environment.version) not in _pythons(made / "cffi", THIS_MACHINE):
            _copy_cffi(environment, made / "cffi")
        command = [environment.python, "-E", "-s", *_COMPILE]
        subprocess.run(command, cwd=made, check=True, capture_output=True)
    listing: _Listing = {
        "opscope": opscope.__version__,
        "machines": {
            machine.name: _pythons(made / "cffi", machine.name)
            for machine in sorted((made / "machines").iterdir())
        },
        "made": is_made,
        "files": _digests(made),
    }
    for machine, pythons in listing["machines"].items():
        if not pythons:
            raise OpscopeError(f"no cffi for {machine}: give wheels of it with --cffi")
    (made / LISTING).write_text(json.dumps(listing, indent=1) + "\n")


def _unpack_wheel(wheel: Path, machines: Path) -> None:
    named = _WHEEL.fullmatch(wheel.name)
    if named is None or named[1] != opscope.__version__:
        raise OpscopeError(f"{wheel}: not a wheel of opscope {opscope.__version__} for Linux")
    into = machines / f"{named[3]}-linux-{'gnu' if named[2] == 'many' else 'musl'}"
    into.mkdir(exist_ok=True)
    try:
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                match = _LIBRARY.fullmatch(name)
                if match and not _LEFT_OUT.fullmatch(match[1]):
                    (into / match[1]).write_bytes(archive.read(name))
    except (OSError, zipfile.BadZipFile) as error:
        raise OpscopeError(f"cannot read {wheel}: {error}") from error


def _left_out(folder: str, names: list[str]) -> Iterable[str]:
    return [name for name in names if _LEFT_OUT.fullmatch(name)]


def _copy_cffi(environment: Environment, into: Path) -> None:
    command = [environment.python, "-E", "-s", "-c", _ASK_CFFI]
    done = subprocess.run(command, capture_output=True, text=True)
    version, _, path = done.stdout.strip().partition("\n")
    if done.returncode != 0 or not _is_known(version):
        has = f"cffi {version}" if version else "no cffi"
        raise OpscopeError(
            f"{environment.title} has {has}, and a payload needs cffi's module for that Python: "
            f"`{environment.python} -m pip install 'cffi>=2.0'`, or give a wheel with --cffi"
        )
    shutil.copy(path, into)


def _unpack_cffi(source: Path, into: Path) -> None:
    if not source.exists():
        raise OpscopeError(f"{source}: no such file; `pip download cffi --no-deps` fetches a wheel")
    wheels = sorted(source.glob("cffi-*.whl")) if source.is_dir() else [source]
    if not wheels:
        raise OpscopeError(f"{source}: no wheel of cffi in this directory")
    for wheel in wheels:
        version = wheel.name.split("-")[1:2]
        if not version or not _is_known(version[0]):
            raise OpscopeError(f"{wheel}: not a wheel of cffi 2.0 or later")
        try:
            with zipfile.ZipFile(wheel) as archive:
                for name in archive.namelist():
                    match = _BACKEND.fullmatch(name)
                    if match:
                        (into / match[1]).write_bytes(archive.read(name))
        except (OSError, zipfile.BadZipFile) as error:
            raise OpscopeError(f"cannot read {wheel}: {error}") from error


def _is_known(version: str) -> bool:
    numbers = re.match(r"(\d+)\.(\d+)", version)
    return numbers is not None and (int(numbers[1]), int(numbers[2])) >= _OLDEST_CFFI


def _pythons(cffi: Path, machine: str) -> list[str]:
    """The versions of Python that have cffi's module on that kind of machine."""
    names = (_BACKEND.fullmatch(path.name) for path in cffi.iterdir())
    found = {(int(name[2]), int(name[3])) for name in names if name and name[4] == machine}
    return [f"{major}.{minor}" for major, minor in sorted(found)]


def _digests(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != LISTING
    }
