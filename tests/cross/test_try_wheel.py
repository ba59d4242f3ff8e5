"""What `try_wheel.py` tries, and with which variables; `make wheels` names Pythons it lacks."""

import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from native.cross import try_wheel
from native.cross.build import ROOT

PLATFORMS = (
    *("manylinux_2_27_x86_64", "manylinux_2_27_aarch64"),
    *("musllinux_1_2_x86_64", "musllinux_1_2_aarch64"),
)
FREE_THREADED = f"cp{sys.version_info[0]}{sys.version_info[1]}t-manylinux_2_27_x86_64"
COUNTED = f'{{"operators": [{{"operator": "numpy::add", "samples": {try_wheel.ADDITIONS}}}]}}'


def wheel(tags: str) -> str:
    python = "cp310" if tags.startswith("abi3") else tags.split("-")[0].rstrip("t")
    return f"opscope-1.0-{python}-{tags}.whl"


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], dict[str, Any]]]:
    """The commands with their keywords. Each ends well; `top` counts all additions."""
    started: list[tuple[list[str], dict[str, Any]]] = []

    def start(command: list[str | Path], **keywords: Any) -> "subprocess.CompletedProcess[str]":
        started.append(([str(word) for word in command], keywords))
        return subprocess.CompletedProcess(command, 0, COUNTED if "top" in command else "")

    monkeypatch.setattr(subprocess, "run", start)
    return started


@pytest.mark.parametrize(
    ("libc", "machine", "free_threaded", "expected"),
    [
        ("glibc", "x86_64", False, "abi3-manylinux_2_27_x86_64"),
        ("glibc", "aarch64", False, "abi3-manylinux_2_27_aarch64"),
        ("", "x86_64", False, "abi3-musllinux_1_2_x86_64"),
        ("", "aarch64", False, "abi3-musllinux_1_2_aarch64"),
        ("glibc", "x86_64", True, FREE_THREADED),
    ],
)
def test_of_a_directory_it_takes_the_wheel_for_this_python(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    tried: list[tuple[list[str], dict[str, Any]]],
    libc: str,
    machine: str,
    free_threaded: bool,
    expected: str,
) -> None:
    for tags in (FREE_THREADED, *(f"abi3-{name}" for name in PLATFORMS)):
        (tmp_path / wheel(tags)).touch()
    monkeypatch.setattr(platform, "libc_ver", lambda: (libc, ""))
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(try_wheel, "FREE_THREADED", free_threaded)
    try_wheel.main(tmp_path)
    (installed,) = [words[-1] for words, _ in tried if "install" in words]
    assert installed == f"{tmp_path / wheel(expected)}[agent]"


def test_a_directory_with_no_wheel_for_this_python_or_several_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    (tmp_path / wheel(f"abi3-{PLATFORMS[0]}")).touch()
    with pytest.raises(SystemExit, match=r"_riscv64\.whl, and has none$"):
        try_wheel.main(tmp_path)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(platform, "libc_ver", lambda: ("glibc", "2.36"))
    monkeypatch.setattr(try_wheel, "FREE_THREADED", False)
    (tmp_path / wheel(f"abi3-{PLATFORMS[0]}").replace("1.0", "1.1")).touch()
    with pytest.raises(SystemExit, match=r"and has opscope-1\.0-.*, opscope-1\.1-"):
        try_wheel.main(tmp_path)


def test_the_machines_programs_and_variables_do_not_help(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    tried: list[tuple[list[str], dict[str, Any]]],
) -> None:
    """A compiler would hide that a package has no wheel; OPSCOPE_ variables change what is seen."""
    for name in ("CC", "LD_LIBRARY_PATH", "OPSCOPE_DISABLE", "PYTHONPATH"):
        monkeypatch.setenv(name, "of this machine")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    try_wheel.main(_some_wheel(tmp_path))
    _, *within = tried
    for words, keywords in within:
        environ = keywords["env"]
        programs = Path(environ["PATH"])
        assert Path(words[0]).parent == programs
        assert environ["PIP_NO_INDEX"] == "1"
        ours = {name for name in environ if not name.startswith(("PIP", "SSL"))}
        assert ours == {"PATH", "OPSCOPE_DIR"}
        assert keywords["check"]


def test_a_missing_addition_fails(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    tried: list[tuple[list[str], dict[str, Any]]],
) -> None:
    monkeypatch.setattr(try_wheel, "ADDITIONS", try_wheel.ADDITIONS + 1)
    with pytest.raises(AssertionError, match="numpy::add"):
        try_wheel.main(_some_wheel(tmp_path))


def test_make_wheels_names_the_pythons_that_it_lacks_and_fails_if_a_trial_does(
    tmp_path: Path,
) -> None:
    programs = tmp_path / "venv" / "bin"
    programs.mkdir(parents=True)
    (tmp_path / "venv" / "tools").touch()
    script = '#!/bin/sh\necho "$(basename "$0") $*"\ncase "$*" in *try_wheel*) exit {} ;; esac\n'
    for name, status in (("python", 0), ("python-good", 0), ("python-bad", 1)):
        (programs / name).write_text(script.format(status))
        (programs / name).chmod(0o755)

    def make(pythons: str) -> "subprocess.CompletedProcess[str]":
        command = ["make", "--silent", "wheels", f"VENV={tmp_path / 'venv'}", f"PYTHONS={pythons}"]
        environ = {name: text for name, text in os.environ.items() if name != "MAKEFLAGS"}
        return subprocess.run(
            command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=60
        )

    done = make("python-none python-good")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-3:] == [
        "not tried with python-none, which this machine lacks",
        "python-good -c ",
        "python-good native/cross/try_wheel.py dist",
    ]
    assert make("python-bad python-good").returncode != 0


def _some_wheel(directory: Path) -> Path:
    path = directory / wheel(f"abi3-{PLATFORMS[0]}")
    path.touch()
    return path
