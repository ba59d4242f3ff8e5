"""The diagnosis from outside of why a process is not attached."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from opscope.attachment.interpreter import FREE_THREADED
from opscope.installation import path_file
from opscope.processes import attach_diagnosis
from opscope.processes.python_processes import look_up
from opscope.segments.liveness import process_start

WAIT = "import sys; print(flush=True); sys.stdin.read()"


@contextmanager
def running(*command: str, **environ: str) -> Iterator[int]:
    """The pid of a program that has started and waits."""
    with subprocess.Popen(
        command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid


def start_of(*command: str, **environ: str) -> tuple[str, str]:
    with running(*command, **environ) as pid:
        found = look_up(pid, any_executable=True)
        assert found is not None
        assert found.process_start == process_start(pid)
        return found.start


@pytest.mark.parametrize(
    ("flags", "environ", "code", "words"),
    [
        ((), {}, "not-started", "started without opscope"),
        ((), {"OPSCOPE_ATTACH": "0"}, "not-started", "started without opscope"),
        ((), {"OPSCOPE_ATTACH": "1"}, "armed", "no framework with a bridge imported yet"),
        (("-Wd", "-W", "default", "-Xdev"), {"OPSCOPE_ATTACH": "1"}, "armed", "no framework"),
        (("-S",), {"OPSCOPE_ATTACH": "1"}, "not-started", "-S skips the startup files"),
        (("-Es",), {"OPSCOPE_ATTACH": "1"}, "not-started", "-E ignores PYTHONPATH"),
        (("-I",), {"OPSCOPE_ATTACH": "1"}, "not-started", "-I ignores PYTHONPATH"),
        ((), {"OPSCOPE_ATTACH": "1", "OPSCOPE_ENABLED": "off"}, "disabled", "OPSCOPE_ENABLED"),
    ],
)
def test_environment_and_flags_determine_the_diagnosis(
    flags: tuple[str, ...], environ: dict[str, str], code: str, words: str
) -> None:
    found = start_of(sys.executable, *flags, "-c", WAIT, **environ)
    assert found[0] == code
    assert words in found[1]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("python2.7", "Python 2.7: older than 3.10"),
        ("python3.9", "Python 3.9: older than 3.10"),
        ("python3.13t", FREE_THREADED),
        ("pypy3.10", "pypy is not CPython"),
    ],
)
def test_an_interpreter_that_is_not_observed_is_known_by_its_name(
    tmp_path: Path, name: str, why: str
) -> None:
    # A program of that name; only the name matters.
    (tmp_path / name).write_bytes(Path("/bin/sh").resolve().read_bytes())
    (tmp_path / name).chmod(0o755)
    found = start_of(str(tmp_path / name), "-c", "echo; read line", OPSCOPE_ATTACH="1")
    assert found == ("unsupported-python", why)


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    venv.create(tmp_path / "venv", symlinks=True)
    return tmp_path / "venv"


@pytest.mark.parametrize("flags", [(), ("-I",)])
def test_an_installed_environment_arms_programs_started_in_it(
    environment: Path, flags: tuple[str, ...]
) -> None:
    python = str(environment / "bin" / "python")
    (site,) = (environment / "lib").glob("python*/site-packages")
    assert start_of(python, *flags, "-c", WAIT)[0] == "not-started"
    path_file.put(str(site), "/somewhere/opscope")
    os.utime(site / path_file.NAME, (1, 1))
    assert start_of(python, *flags, "-c", WAIT)[0] == "armed"
    assert start_of(python, "-c", WAIT, OPSCOPE_ATTACH="0")[0] == "not-started"
    # Also if PATH finds it.
    command = ("env", "--", "python", *flags, "-c", WAIT)
    assert start_of(*command, PATH=f"{environment}/bin:{os.environ['PATH']}")[0] == "armed"


def test_a_program_started_before_the_installation_is_recognized(environment: Path) -> None:
    (site,) = (environment / "lib").glob("python*/site-packages")
    with running(str(environment / "bin" / "python"), "-c", WAIT) as pid:
        path_file.put(str(site), "/somewhere/opscope")
        in_future = os.stat(f"/proc/{pid}").st_ctime + 3600
        os.utime(site / path_file.NAME, (in_future, in_future))
        found = look_up(pid, any_executable=False)
    assert found is not None
    assert found.start == ("not-started", "started before opscope was installed; restart it")


def test_a_process_that_has_lost_its_segment_says_so(tmp_path: Path) -> None:
    program = (
        "import mmap, os, sys\n"
        f"path = {str(tmp_path / '1-2-3.seg')!r}\n"
        "file = open(path, 'w+b'); file.truncate(4096); memory = mmap.mmap(file.fileno(), 4096)\n"
        f"os.unlink(path)\n{WAIT}"
    )
    found = start_of(sys.executable, "-c", program, OPSCOPE_ATTACH="1")
    assert found == ("recorder", "its segment was deleted; restart the process")


def test_an_ended_process_is_none() -> None:
    with pytest.raises(OSError):  # noqa: PT011 - gone by whatever way
        attach_diagnosis.look(2**22 + 1, 1, ["python"])
    assert look_up(2**22 + 1, any_executable=True) is None
