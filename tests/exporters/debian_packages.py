"""Programs of a later Debian than the one that runs, unpacked and not installed, for tests.

They come from the mirror that this machine's own apt is set up with, through apt, which checks
their signatures; the versions are fixed here. Nothing of the system's apt is changed: lists, cache
and settings are in a directory of their own.
"""

import os
import subprocess
from pathlib import Path

SUITE = "trixie"
VERSIONS = {
    "prometheus": "2.53.3+ds1-2",
    "prometheus-node-exporter": "1.9.0-1+b4",
    "victoria-metrics": "1.112.0+ds1-2",
}

_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_TIMEOUT_S = 600


class UnavailableError(Exception):
    """The program cannot be had on this machine; the text says why."""


def program(package: str, directory: Path) -> Path:
    """The package's program of the same name, fetched into the directory the first time."""
    version = VERSIONS[package]
    root = directory / f"{package}-{version}"
    found = root / "usr" / "bin" / package
    if not found.exists():
        try:
            _fetch(package, version, directory, root)
        except FileNotFoundError as error:
            raise UnavailableError(f"{error.filename} is not there: no Debian?") from error
        except subprocess.CalledProcessError as error:
            said = (error.stderr or "").strip().splitlines()
            raise UnavailableError(f"{package} {version}: {said[-1:] or error}") from error
        except subprocess.TimeoutExpired as error:
            raise UnavailableError(f"{package} {version}: the mirror does not answer") from error
    return found


def _fetch(package: str, version: str, directory: Path, root: Path) -> None:
    environ = _private_apt(directory)
    _run(["apt-get", "update", "-qq"], environ, directory)
    _run(["apt-get", "download", "-qq", f"{package}={version}"], environ, directory)
    (archive,) = directory.glob(f"{package}_*.deb")
    new = root.with_suffix(".new")
    _run(["dpkg-deb", "-x", str(archive), str(new)], environ, directory)
    archive.unlink()
    new.rename(root)


def _private_apt(directory: Path) -> dict[str, str]:
    """What makes apt work in that directory alone."""
    for name in ("lists/partial", "cache/archives/partial"):
        (directory / name).mkdir(parents=True, exist_ok=True)
    (directory / "status").touch()
    sources, settings = directory / "sources.list", directory / "apt.conf"
    sources.write_text(f"deb [signed-by={_KEYRING}] {_mirror()} {SUITE} main\n")
    settings.write_text(
        f'Dir::State::Lists "{directory}/lists";\n'
        f'Dir::State::Status "{directory}/status";\n'
        f'Dir::Cache "{directory}/cache";\n'
        f'Dir::Etc::SourceList "{sources}";\n'
        'Dir::Etc::SourceParts "-";\n'
        'Acquire::Languages "none";\n'
        # Else apt's own user would need to be able to write here.
        f'APT::Sandbox::User "{os.environ.get("USER", "root")}";\n'
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
