"""The package without extras, in an environment that has its own versions of everything else.

Programs of that environment are observed, none of its packages changes, and each command that needs
an extra says so in one line.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

import opscope
from opscope.cli import _commands
from opscope.host.host import Host
from opscope.segments import directories
from tests.environments import new_environment, pip

# Older than the extras require, and pinned by frameworks.
PINNED = ("click==7.1.2", "protobuf==3.20.3", "grpcio<1.70")
PROGRAM = """
import sys
import numpy
for _ in range(7):
    numpy.add(numpy.ones(3), 1)
print("opscope" in sys.modules, *{"click", "google.protobuf", "grpc", "optparse"} & {*sys.modules})
"""


class Bare:
    """An environment with the wheel and no extra."""

    def __init__(self, directory: Path, wheel: Path) -> None:
        self.directory = new_environment(directory)
        self.programs = directory / "bin"
        self.python = self.programs / "python"
        # Built, because the wheel of an old version may be missing.
        self.install("--only-binary=:all:", "numpy", *PINNED)
        before = self.packages()
        self.install(wheel)
        self.before, self.after = before, self.packages()

    def install(self, *what: str | Path) -> None:
        pip(self.directory, "install", "--quiet", *what)

    def packages(self) -> dict[str, str]:
        listed = pip(self.directory, "list", "--format", "json")
        return {one["name"]: one["version"] for one in json.loads(listed)}

    def run(self, *command: str | Path, **environ: str) -> subprocess.CompletedProcess[str]:
        kept = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("OPSCOPE_", "PYTHON", "OTEL_"))
        }
        return subprocess.run(
            command, env=kept | environ, capture_output=True, text=True, timeout=300
        )

    def opscope(self, *arguments: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
        return self.run(self.programs / "opscope", *arguments, **env)


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Bare:
    return Bare(tmp_path_factory.mktemp("bare") / "venv", wheel)


def added(place: Path) -> float:
    """Calls of numpy.add in those segments."""
    snapshot = Host(directories.exactly([str(place)]), consume=False).collect()
    rows = [row for row, key in enumerate(snapshot.keys) if key.op == "numpy::add"]
    return sum(float(snapshot.calls[row]) for row in rows)


def test_it_installs_only_cffi_and_changes_nothing(bare: Bare) -> None:
    # cffi itself asks for pycparser.
    assert bare.after.keys() - bare.before.keys() == {"opscope", "cffi", "pycparser"}
    assert {name: bare.after[name] for name in bare.before} == bare.before
    assert bare.before["click"] == "7.1.2"


def test_run_observes_a_numpy_program(bare: Bare, tmp_path: Path) -> None:
    place = tmp_path / "segments"
    done = bare.opscope(
        *("run", "--sampling", "1", "--directory", place, "--", bare.python, "-c", PROGRAM)
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")
    assert added(place) == 7


def test_installed_it_observes_every_numpy_program(bare: Bare, tmp_path: Path) -> None:
    settings = {"OPSCOPE_DIR": str(tmp_path / "segments"), "OPSCOPE_SAMPLING": "1"}
    assert bare.opscope("status").returncode == 1
    done = bare.opscope("install")
    assert (done.returncode, done.stderr) == (0, "")
    try:
        assert f"opscope {opscope.__version__}" in bare.opscope("status").stdout
        done = bare.run(bare.python, "-c", PROGRAM, **settings)
        assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")
        assert added(tmp_path / "segments") == 7
    finally:
        assert bare.opscope("uninstall").returncode == 0
    assert bare.run(bare.python, "-c", PROGRAM, **settings).stdout == "False\n"


def test_its_payload_observes_too(bare: Bare, tmp_path: Path) -> None:
    payload, place = tmp_path / "payload", tmp_path / "segments"
    done = bare.opscope("install", "--payload", payload)
    assert (done.returncode, done.stderr) == (0, "")
    settings = {"PYTHONPATH": f"{payload}/site", "OPSCOPE_ATTACH": "1", "OPSCOPE_SAMPLING": "1"}
    done = bare.run(bare.python, "-c", PROGRAM, OPSCOPE_DIR=str(place), **settings)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")
    assert added(place) == 7


def test_every_other_command_says_which_extra_it_needs(bare: Bare) -> None:
    plain = {name for name in _commands.names() if _commands.without_extra(name)}
    assert plain == {"install", "run", "status", "uninstall"}
    for name in set(_commands.names()) - plain:
        done = bare.opscope(name)
        line = f"Error: opscope {name} needs the extra 'agent': pip install 'opscope[agent]'\n"
        assert (done.returncode, done.stdout, done.stderr) == (1, "", line)


def test_help_and_version_need_no_extra(bare: Bare) -> None:
    assert bare.opscope("--version").stdout == f"opscope, version {opscope.__version__}\n"
    for words in ((), ("--help",), ("-h",)):
        done = bare.opscope(*words)
        assert (done.returncode, done.stderr) == (0, "")
        assert "  run        Run a program and observe it.\n" in done.stdout
        assert "pip install 'opscope[agent]'" in done.stdout
    for name in ("install", "run", "status", "uninstall"):
        assert bare.opscope(name, "--help").stdout.startswith(f"Usage: opscope {name} ")
    done = bare.opscope("nonsense")
    assert (done.returncode, done.stderr) == (2, "Error: No such command 'nonsense'.\n")


def test_tensors_work_without_openblas(bare: Bare) -> None:
    program = (
        "import opscope.tensor as t; "
        "print(t.tensor([[1.0, 2.0]]).matmul(t.tensor([[3.0], [4.0]])).tolist())"
    )
    done = bare.run(bare.python, "-c", program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[[11.0]]\n", "")
