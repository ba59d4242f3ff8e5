"""Packages of any Debian suite and architecture, unpacked into a directory and not installed; and
their sources, as their authors published them, without Debian's changes.

They come from the mirror that this machine's apt is set up with, through apt, which checks their
signatures. Nothing of the system's apt changes: lists, cache and settings lie beside the directory.
"""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_TIMEOUT_S = 600


class UnavailableError(Exception):
    """A package cannot be had on this machine; the text says why."""


def unpack(packages: Iterable[str], suite: str, into: Path, architecture: str = "") -> Path:
    """Unpacks the packages (`name` or `name=version`) into a new directory; returns the directory.

    They are of this machine's architecture, unless one is given. Does nothing if the directory
    exists. Absolute links of the packages become relative ones. Raises UnavailableError.
    """
    return _once(into, suite, lambda: _fetch(packages, suite, architecture, into))


def unpack_source(package: str, suite: str, into: Path) -> Path:
    """Unpacks the source of that source package, likewise."""
    return _once(into, suite, lambda: _fetch_source(package, suite, into))


def _once(into: Path, suite: str, fetch: Callable[[], None]) -> Path:
    into.parent.mkdir(parents=True, exist_ok=True)
    with into.with_name(into.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process may want it at the same time
        if not into.exists():
            try:
                fetch()
            except FileNotFoundError as error:
                raise UnavailableError(f"{error.filename} is not there: no Debian?") from error
            except subprocess.CalledProcessError as error:
                said = (error.stderr or "").strip().splitlines()
                raise UnavailableError(f"{into.name}: {said[-1:] or error}") from error
            except subprocess.TimeoutExpired as error:
                raise UnavailableError(f"{suite}: the mirror does not answer") from error
    return into


def _fetch_source(package: str, suite: str, into: Path) -> None:
    state = into.with_name(f"apt-{suite}-source")
    environ = _private_apt(state, suite, "", kind="deb-src")
    new = into.with_name(into.name + ".new")
    shutil.rmtree(new, ignore_errors=True)
    archives = state / "archives"
    shutil.rmtree(archives, ignore_errors=True)
    for directory in (new, archives):
        directory.mkdir()
    _run(["apt-get", "update", "-qq"], environ, state)
    _run(["apt-get", "source", "--download-only", "-qq", package], environ, archives)
    (archive,) = (path for path in archives.glob("*.orig.tar.*") if path.suffix != ".asc")
    _run(["tar", "-x", "-f", str(archive), "--strip-components=1"], environ, new)
    new.rename(into)


def _fetch(packages: Iterable[str], suite: str, architecture: str, into: Path) -> None:
    state = into.with_name(f"apt-{suite}{architecture and '-' + architecture}")
    environ = _private_apt(state, suite, architecture)
    new = into.with_name(into.name + ".new")
    archives = state / "archives"
    archives.mkdir(exist_ok=True)
    for left in archives.iterdir():
        left.unlink()
    _run(["apt-get", "update", "-qq"], environ, state)
    _run(["apt-get", "download", "-qq", *packages], environ, archives)
    for archive in sorted(archives.iterdir()):
        _run(["dpkg-deb", "-x", str(archive), str(new)], environ, state)
        archive.unlink()
    for folder, folders, files in os.walk(new):
        for path in (Path(folder, name) for name in (*folders, *files)):
            if path.is_symlink() and (target := os.readlink(path)).startswith("/"):
                path.unlink()
                path.symlink_to(os.path.relpath(f"{new}{target}", path.parent))
    new.rename(into)


def _private_apt(
    directory: Path, suite: str, architecture: str, kind: str = "deb"
) -> dict[str, str]:
    """The environment in which apt works in that directory alone."""
    for name in ("lists/partial", "cache/archives/partial"):
        (directory / name).mkdir(parents=True, exist_ok=True)
    (directory / "status").touch()
    sources, settings = directory / "sources.list", directory / "apt.conf"
    only = f'APT::Architecture "{architecture}";\nAPT::Architectures {{ "{architecture}"; }};\n'
    sources.write_text(f"{kind} [signed-by={_KEYRING}] {_mirror()} {suite} main\n")
    settings.write_text(
        f'Dir::State::Lists "{directory}/lists";\n'
        f'Dir::State::Status "{directory}/status";\n'
        f'Dir::Cache "{directory}/cache";\n'
        f'Dir::Etc::SourceList "{sources}";\n'
        'Dir::Etc::SourceParts "-";\n'
        'Acquire::Languages "none";\n'
        # Else apt's own user would need to be able to write here.
        f'APT::Sandbox::User "{os.environ.get("USER", "root")}";\n' + (only if architecture else "")
    )
    return {**os.environ, "APT_CONFIG": str(settings), "LC_ALL": "C"}


def _mirror() -> str:
    """Where this machine takes Debian from."""
    if not _KEYRING.exists():
        raise UnavailableError("no keyring of Debian's archive")
    form = "$(ORIGIN)|$(LABEL)|$(REPO_URI)"
    listed = _run(["apt-get", "indextargets", "--format", form], dict(os.environ), Path("/"))
    for line in listed.splitlines():
        origin, label, uri = line.split("|")
        if (origin, label) == ("Debian", "Debian"):
            return uri
    raise UnavailableError("apt has no lists of Debian's: apt-get update was not run")


def _run(command: list[str], environ: dict[str, str], directory: Path) -> str:
    return subprocess.run(
        command,
        env=environ,
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=True,
    ).stdout
