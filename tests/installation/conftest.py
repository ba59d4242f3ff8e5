"""Environments to install into, and comparisons of a directory before and after."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

OPSCOPE = Path(sysconfig.get_path("scripts")) / "opscope"


def opscope(*arguments: str | Path, **environ: str) -> subprocess.CompletedProcess[str]:
    """The command, in an environment without settings."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("OPSCOPE_")}
    return subprocess.run(
        [OPSCOPE, *arguments], env=kept | environ, capture_output=True, text=True, timeout=300
    )


def contents(directory: Path) -> dict[str, tuple[int, str]]:
    """The mode and the digest, or link target, of everything in it."""
    found = {}
    for path in sorted(directory.rglob("*")):
        what = "directory"
        if path.is_symlink():
            what = os.readlink(path)
        elif path.is_file():
            what = hashlib.sha256(path.read_bytes()).hexdigest()
        found[str(path.relative_to(directory))] = (path.lstat().st_mode, what)
    return found


class Venv:
    """A virtual environment in which the opscope of these tests can be imported."""

    def __init__(self, directory: Path) -> None:
        venv.create(directory, symlinks=True)
        self.directory = directory
        self.python = directory / "bin" / "python"
        (self.site,) = (directory / "lib").glob("python*/site-packages")
        # An editable install of opscope uses path files too.
        places = dict.fromkeys(path for path in sys.path if path.endswith("site-packages"))
        lines = [f"import site; site.addsitedir({place!r})\n" for place in places]
        (self.site / "tests.pth").write_text("".join(lines))

    def run(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        kept = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("OPSCOPE_", "PYTHON", "OTEL_"))
        }
        return subprocess.run(
            [self.python, "-B", *arguments],
            env=kept | environ,
            capture_output=True,
            text=True,
            timeout=300,
        )


@pytest.fixture
def environment(tmp_path: Path) -> Venv:
    return Venv(tmp_path / "venv")


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter without installed packages; it does not see those of its base either."""
    directory = tmp_path_factory.mktemp("bare")
    venv.create(directory, symlinks=True)
    return str(directory / "bin" / "python")
