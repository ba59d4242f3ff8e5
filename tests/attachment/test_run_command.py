"""`opscope run`: the program's own status, streams and signals; and clear errors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from .conftest import Bench

RUN = [sys.executable, "-c", "from opscope.cli import main; main()", "run"]


def opscope_run(
    bench: Bench, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    return bench.start([*RUN, *arguments], {**bench.bare, **variables})


def test_a_program_is_observed(bench: Bench) -> None:
    done = opscope_run(
        bench, "--directory", "segments", "--", sys.executable, "-c", "import numpy; print('out')"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "out\n", "")
    assert len(bench.segment_files()) == 1


def test_the_status_is_the_programs(bench: Bench) -> None:
    assert opscope_run(bench, "sh", "-c", "exit 9").returncode == 9
    assert opscope_run(bench, "sh", "-c", "kill -TERM $$").returncode == -signal.SIGTERM


def test_the_options_of_the_program_are_not_taken(bench: Bench) -> None:
    assert opscope_run(bench, "echo", "--debug", "--", "-x").stdout == "--debug -- -x\n"


def test_options_become_variables(bench: Bench) -> None:
    options = ["--sampling", "windows", "--window-ms", "3", "--period-ms", "50", "--debug"]
    options += ["--labels", "a,b", "--directory", "segments", "--service", "web"]
    options += ["--max-overhead", "1%"]
    lines = opscope_run(bench, *options, "env").stdout.splitlines()
    assert {
        "OPSCOPE_ATTACH=1",
        "OPSCOPE_SAMPLING=windows",
        "OPSCOPE_WINDOW_MS=3",
        "OPSCOPE_PERIOD_MS=50",
        "OPSCOPE_DEBUG=1",
        "OPSCOPE_LABELS=a,b",
        "OPSCOPE_MAX_OVERHEAD=1%",
        f"OPSCOPE_DIR={bench.segments}",
        "OTEL_SERVICE_NAME=web",
    } <= set(lines)


def test_the_length_of_windows_asks_for_windows(bench: Bench) -> None:
    assert "OPSCOPE_SAMPLING=windows\n" in opscope_run(bench, "--window-ms", "3", "env").stdout


def test_the_rest_of_the_environment_is_the_programs(bench: Bench) -> None:
    bare = {b"PATH": os.fsencode(os.environ["PATH"]), b"LANG": b"C", b"ODD": b"\xff="}
    bare |= {b"PYTHONPATH": os.fsencode(bench.bare.get("PYTHONPATH", ""))}
    done = subprocess.run([*RUN, "env", "-0"], env=bare, capture_output=True, check=True)
    seen = dict(entry.split(b"=", 1) for entry in done.stdout.rstrip(b"\0").split(b"\0"))
    assert seen.pop(b"OPSCOPE_ATTACH") == b"1"
    assert {**seen, b"PYTHONPATH": b""} == {**bare, b"PYTHONPATH": b""}


def test_without_proc_the_program_runs_anyway(bench: Bench) -> None:
    hidden = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
    if bench.start([*hidden, "true"], bench.bare).returncode != 0:
        pytest.skip("needs root and a mount namespace, which may not be made here")
    done = bench.start([*hidden, *RUN, "echo", "on"], bench.bare)
    assert (done.returncode, done.stdout, done.stderr) == (0, "on\n", "")


def test_standard_input_is_the_programs(bench: Bench) -> None:
    done = subprocess.run(
        [*RUN, "cat"], input="text", env=bench.bare, capture_output=True, text=True
    )
    assert done.stdout == "text"


def test_signals_that_python_ignores_are_not_ignored_by_the_program(bench: Bench) -> None:
    done = opscope_run(bench, "grep", "SigIgn", "/proc/self/status")
    bare = bench.start(["grep", "SigIgn", "/proc/self/status"], bench.bare)
    assert done.stdout == bare.stdout


@pytest.mark.parametrize(
    ("command", "status", "words"),
    [
        (("no-such-command",), 127, "no-such-command: command not found"),
        (("/dev/null",), 126, "/dev/null: Permission denied"),
        (("/",), 126, "/: Permission denied"),
        (("--sampling", "2", "true"), 125, "OPSCOPE_SAMPLING='2': must be a probability"),
        (("--sampling", "1", "--window-ms", "2", "true"), 2, "require --sampling windows"),
        (("--sample", "1", "true"), 2, "--sample"),
        ((), 2, "CMD"),
    ],
)
def test_a_command_that_cannot_run_is_reported(
    bench: Bench, command: tuple[str, ...], status: int, words: str
) -> None:
    done = opscope_run(bench, *command)
    assert done.returncode == status
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_the_environment_may_already_be_an_observed_one(bench: Bench) -> None:
    once = opscope_run(bench, "env").stdout
    twice = opscope_run(bench, *RUN, "env").stdout
    assert sorted(once.splitlines()) == sorted(twice.splitlines())
