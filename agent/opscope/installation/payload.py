"""The payload: one directory with all that an observed process needs, to be copied anywhere.

    DIR/site/           goes onto PYTHONPATH, with OPSCOPE_ATTACH=1
    DIR/opscope/        the light part of the package, with the C library
    DIR/cffi/           cffi's extension module, one for each version of Python
    DIR/payload.json    what this is, and a digest of each file

Bytecode is compiled for each interpreter that is named, and valid wherever the directory is copied
to. DIR/site comes last when writing and goes first when removing: where it is, the rest is whole.
Not here: how an interpreter is asked (environment.py).
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypedDict

import opscope
from opscope import _native
from opscope.errors import OpscopeError
from opscope.installation.environment import Environment

LISTING = "payload.json"

_ORDER = ("opscope", "cffi", LISTING, "site")
# The host's side of the package, and what only programs written for opscope import.
_LEFT_OUT = re.compile(
    r"(agent|bench|cli|fleet|installation|tensor|include|__pycache__)|demo.*|.*\.pyi|.*tensor.*\.so"
)
_BACKEND = re.compile(r"(?:.*/)?(_cffi_backend\.cpython-(\d)(\d+)-[\w-]+\.so)")
# 2.0 is what the package asks for; a later one with another interface refuses itself.
_OLDEST_CFFI = (2, 0)
_ASK_CFFI = "import _cffi_backend as b; print(b.__version__); print(b.__file__)"
_COMPILE = (
    *("-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"),
    *("-s", ".", "-p", "opscope-payload", "."),
)


class _Listing(TypedDict):
    """payload.json."""

    opscope: str
    machine: str
    pythons: list[str]
    made: bool
    """Whether the directory was not there before."""
    files: dict[str, str]
    """SHA-256 of each, by path."""


def write(place: str, environments: Sequence[Environment], cffi: Sequence[str]) -> None:
    """Makes the payload at `place`, instead of an earlier one if there is one.

    For the Pythons of `environments`, each of which must have cffi, and for those that `cffi` has
    the extension module of: wheels of cffi, or directories of such. Raises OpscopeError where
    something of that is missing, `place` holds anything else, or it cannot be written.
    """
    target = Path(place).absolute()
    existing = _existing(target)
    is_made = _listing(target)["made"] if existing else not target.exists()
    try:
        target.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".opscope-", dir=target) as made:
            _fill(Path(made), environments, cffi, is_made)
            if existing:
                _take_apart(target)
            for name in _ORDER:
                os.rename(Path(made) / name, target / name)
    except (OSError, subprocess.SubprocessError) as error:
        raise OpscopeError(f"cannot write the payload {place}: {error}") from error
    finally:
        if is_made and target.exists() and not any(target.iterdir()):
            target.rmdir()


def remove(place: str) -> bool:
    """Removes the payload, and the directory if write() made it; False: there is none.

    Raises OpscopeError where a file is not as it was written.
    """
    target = Path(place)
    if not _existing(target):
        return False
    is_made = _listing(target)["made"]
    try:
        _take_apart(target)
        if is_made:
            target.rmdir()
    except OSError as error:
        raise OpscopeError(f"cannot remove the payload {place}: {error}") from error
    return True


def describe(place: str) -> str | None:
    """What the payload there is, in words; None where there is none.

    Raises OpscopeError where its files are not those that it was written with.
    """
    target = Path(place)
    if not _existing(target):
        return None
    said = _listing(target)
    pythons = ", ".join(said["pythons"])
    return f"payload of opscope {said['opscope']} for Python {pythons} on {said['machine']}"


def _existing(target: Path) -> bool:
    """Whether a payload is there, unchanged. Raises where something else is."""
    if not target.exists():
        return False
    if not target.is_dir():
        raise OpscopeError(f"{target} is not a directory")
    if not (target / LISTING).exists():
        if any(target.iterdir()):
            raise OpscopeError(f"{target} holds something that is no payload; choose an empty one")
        return False
    listed = _listing(target)["files"]
    found = _digests(target)
    # Python itself adds bytecode where it may write.
    changed = [name for name in found.keys() - listed.keys() if "/__pycache__/" not in name]
    changed += [name for name, digest in listed.items() if found.get(name) != digest]
    if changed:
        names = ", ".join(sorted(changed)[:5])
        raise OpscopeError(f"{target} is not as opscope wrote it ({names}); see to it yourself")
    return True


def _listing(target: Path) -> _Listing:
    try:
        said = json.loads((target / LISTING).read_text())
        if not isinstance(said["files"], dict) or not isinstance(said["pythons"], list):
            raise ValueError("another form than opscope writes")
        return _Listing(
            opscope=str(said["opscope"]),
            machine=str(said["machine"]),
            pythons=said["pythons"],
            made=bool(said["made"]),
            files=said["files"],
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise OpscopeError(f"cannot read {target / LISTING}: {error}") from error


def _take_apart(target: Path) -> None:
    for name in reversed(_ORDER):
        path = target / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _fill(
    made: Path, environments: Sequence[Environment], cffi: Sequence[str], is_made: bool
) -> None:
    package = Path(opscope.__file__).parent
    shutil.copytree(package, made / "opscope", ignore=_left_out)
    for library in Path(_native.__file__).parent.glob("*.so"):
        if not _LEFT_OUT.fullmatch(library.name):
            shutil.copy(library, made / "opscope")
    # As a file of its own, so that copying needs to know nothing of links.
    shutil.copytree(package / "attachment" / "site", made / "site", ignore=_left_out)
    (made / "cffi").mkdir()
    for path in cffi:
        _unpack_cffi(Path(path), made / "cffi")
    for environment in environments:
        if "{}.{}".format(*environment.version) not in _pythons(made / "cffi"):
            _copy_cffi(environment, made / "cffi")
        command = [environment.python, "-E", "-s", *_COMPILE]
        subprocess.run(command, cwd=made, check=True, capture_output=True)
    listing: _Listing = {
        "opscope": opscope.__version__,
        "machine": platform.machine(),
        "pythons": sorted(_pythons(made / "cffi"), key=lambda v: [int(n) for n in v.split(".")]),
        "made": is_made,
        "files": _digests(made),
    }
    (made / LISTING).write_text(json.dumps(listing, indent=1) + "\n")


def _left_out(folder: str, names: list[str]) -> Iterable[str]:
    return [name for name in names if _LEFT_OUT.fullmatch(name)]


def _copy_cffi(environment: Environment, into: Path) -> None:
    command = [environment.python, "-E", "-s", "-c", _ASK_CFFI]
    done = subprocess.run(command, capture_output=True, text=True)
    version, _, path = done.stdout.strip().partition("\n")
    if done.returncode != 0 or not _is_known(version):
        has = f"cffi {version}" if version else "no cffi"
        raise OpscopeError(
            f"{environment.title} has {has}, and its part for that Python belongs into a payload: "
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


def _pythons(cffi: Path) -> Iterator[str]:
    for path in cffi.iterdir():
        if match := _BACKEND.fullmatch(path.name):
            yield f"{match[2]}.{match[3]}"


def _digests(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != LISTING
    }
