"""Start programs bare and observed, and read their ledger and segments afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path

import pytest

from opscope.attachment import ledger
from opscope.attachment.launch import environment

_NAMES = ("python2.7", *(f"python3.{minor}" for minor in range(6, 16)), "/usr/bin/python3")


def _other_interpreters() -> list[str]:
    """Interpreters of this machine that run, other than the one of the tests."""
    found = {}
    for name in _NAMES:
        path = shutil.which(name)
        program = "import sys; print(sys.version); print(sys.prefix)"
        if path is not None:
            done = subprocess.run([path, "-c", program], capture_output=True, text=True)
            if done.returncode == 0 and done.stdout != f"{sys.version}\n{sys.prefix}\n":
                found[done.stdout] = path
    return list(found.values())


OTHER_INTERPRETERS = _other_interpreters()


class Bench:
    """A directory for programs, with a stub of numpy, and a segment directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.segments = directory / "segments"
        self.stub = directory / "stub"
        (self.stub / "numpy").mkdir(parents=True)
        (self.stub / "numpy" / "__init__.py").write_text("__version__ = '99.0'\n")
        inherited = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("OPSCOPE", "OTEL", "PYTHON")) or key == "PYTHONPATH"
        }
        self.bare = inherited

    def stub_environment(self, **variables: str) -> dict[str, str]:
        """Environment of an observed program, with only the stub of numpy on PYTHONPATH."""
        own = {"PYTHONPATH": str(self.stub), "OPSCOPE_DIR": str(self.segments)}
        return environment({**self.bare, **own, **variables})

    def run(
        self,
        *arguments: str,
        python: str = sys.executable,
        observed: bool = True,
        stub: bool = True,
        **variables: str,
    ) -> subprocess.CompletedProcess[str]:
        """Runs Python with these arguments; `stub` puts the stub of numpy on its path."""
        environ = dict(self.bare)
        if stub:
            path = [str(self.stub), *filter(None, [environ.get("PYTHONPATH")])]
            environ["PYTHONPATH"] = os.pathsep.join(path)
        environ |= variables
        if observed:
            environ = environment({"OPSCOPE_DIR": str(self.segments), **environ})
        return self.start([python, *arguments], environ)

    def start(
        self, command: list[str], environ: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, env=environ, cwd=self.directory, capture_output=True, text=True
        )

    def script(self, name: str, text: str) -> str:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path)

    def segment_files(self) -> list[Path]:
        return sorted(self.segments.glob("*.seg"))

    def reasons(self) -> list[tuple[str, str]]:
        """Code and text of the entries in the segment directory."""
        return [(entry.code, entry.text) for entry in ledger.read_all([str(self.segments)])]

    def reasons_elsewhere(self, directory: str) -> list[str]:
        """Codes of the fallback ledger's entries about `directory`, which are then removed."""
        entries = [e for e in ledger.read_all(ledger.places(None)) if directory in e.text]
        for entry in entries:
            ledger.forget(entry)
        return [entry.code for entry in entries]

    def codes(self) -> list[str]:
        return [code for code, _ in self.reasons()]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter without installed packages."""
    directory = tmp_path_factory.mktemp("bare")
    venv.create(directory, symlinks=True)
    return str(directory / "bin" / "python")


@pytest.fixture(params=OTHER_INTERPRETERS or [sys.executable], ids=os.path.basename)
def other_python(request: pytest.FixtureRequest) -> str:
    return str(request.param)
