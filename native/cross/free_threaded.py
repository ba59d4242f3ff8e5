"""A free-threaded CPython: the one given, one on PATH, or one built from Debian's source package.

Debian has no packages of it. The build takes some minutes, and needs the headers of zlib, OpenSSL
and libffi beside a compiler; it lies in build/cross and is made once.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from native.cross import debian
from native.cross.targets import BUILD

VERSION = "3.14"
BUILD_REQUIREMENTS = ("pip>=25.1", "scikit-build-core>=0.12", "cffi>=2.1", "cmake", "ninja")
SUITES = ("sid", "forky")
"""Suites of Debian that have, or had, this version."""


def interpreter(given: str = "") -> str:
    """The path of the interpreter. Raises UnavailableError."""
    found = shutil.which(given) if given else on_path()
    if given and not found:
        raise debian.UnavailableError(f"{given} is not there")
    return found or str(_built())


def on_path() -> str | None:
    return shutil.which(f"python{VERSION}t")


def environment(base: str, place: Path) -> Path:
    """The interpreter of an environment at that place, made the first time, that can build."""
    python = place / "bin" / "python"
    if not python.exists():
        subprocess.run([base, "-m", "venv", "--without-pip", place], check=True)
        install(python, *BUILD_REQUIREMENTS)
    return python


def install(python: Path, *packages: str) -> None:
    """Installs packages of PyPI into its environment."""
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet")
    subprocess.run([*pip, *packages], check=True)


def _built() -> Path:
    into = BUILD / f"python-{VERSION}t"
    python = into / "bin" / f"python{VERSION}t"
    if not python.exists():
        source = _source()
        options = ["--disable-gil", "--disable-test-modules", "--without-ensurepip", "--quiet"]
        jobs = f"-j{os.cpu_count()}"
        for command in (
            ["./configure", f"--prefix={into}", *options],
            ["make", "--silent", jobs],
            ["make", "--silent", "altinstall"],
        ):
            subprocess.run(command, cwd=source, check=True, stdout=subprocess.DEVNULL)
    return python


def _source() -> Path:
    failures = []
    for suite in SUITES:
        try:
            into = BUILD / f"python{VERSION}-source-{suite}"
            return debian.unpack_source(f"python{VERSION}", suite, into)
        except debian.UnavailableError as error:
            failures.append(str(error))
    raise debian.UnavailableError(f"no python{VERSION}t on PATH, and no source: {failures}")
