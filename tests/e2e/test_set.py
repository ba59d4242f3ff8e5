"""`opscope set` on real programs takes effect while they run, and in later ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from opscope.cli._group import main
from opscope.host.host import Host
from opscope.host.snapshot import Process
from tests.waiting import until

CLI = [sys.executable, "-c", "import opscope.cli; opscope.cli.main()"]
# Runs operators on command, and reports when it has.
NUMPY = """
import os, sys
import numpy as np
a = np.ones(4)
for line in sys.stdin:
    what, count = line.split()
    if what == "fork":
        if os.fork() == 0:
            np.subtract(a, a)
            for _ in range(int(count)):
                np.subtract(a, a)
            os._exit(0)
        os.wait()
    for _ in range(int(count) if what != "fork" else 0):
        getattr(np, what)(a, a)
    print("done", flush=True)
"""
TORCH = """
import sys
import torch
torch.set_num_threads(1)
a = torch.ones(4)
for line in sys.stdin:
    what, count = line.split()
    for _ in range(int(count)):
        getattr(torch, what)(a, a)
    print("done", flush=True)
"""


class Program:
    """An observed program that runs operators on command."""

    def __init__(self, directory: Path, process: subprocess.Popen[str]) -> None:
        self.directory = directory
        self.process = process

    def run(self, what: str, count: int) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{what} {count}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def set(self, *words: str) -> dict[str, Any]:
        """Changes its settings while it works; asserts that they took effect."""
        command = ["set", "--pid", str(self.process.pid), "--json", *words, "--wait", "300"]
        command += ["--directory", str(self.directory)]
        with ThreadPoolExecutor(1) as executor:
            # In this process: starting the command takes longer than what it does.
            setting = executor.submit(CliRunner().invoke, main, command)
            while not wait([setting], 0.01).done:  # meanwhile it has the processor to itself
                self.run("multiply", 200)
        done = setting.result()
        said: dict[str, Any] = json.loads(done.stdout)
        assert (done.exit_code, said["problems"]) == (0, [])
        (process,) = said["processes"]
        assert (process["applied"], process["answer"]) == (True, "in force")
        return process  # type: ignore[no-any-return]

    def calls(self, op: str, pid: int | None = None) -> float:
        snapshot = Host([str(self.directory)], consume=False, by_process=True).collect()
        found = zip(snapshot.keys, snapshot.calls.tolist(), strict=True)
        wanted = self.process.pid if pid is None else pid
        return sum(
            float(calls)
            for key, calls in found
            if key.op.endswith(f"::{op}") and key.process == wanted
        )

    def state(self) -> Process:
        snapshot = Host([str(self.directory)], consume=False).collect()
        (process,) = (p for p in snapshot.processes if p.pid == self.process.pid)
        return process


def _environ(directory: Path, **variables: str) -> dict[str, str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("OPSCOPE", "OTEL"))}
    return {**clean, "OPSCOPE_DIR": str(directory), **variables}


@contextmanager
def program(directory: Path, text: str = NUMPY, **variables: str) -> Iterator[Program]:
    with subprocess.Popen(
        [*CLI, "run", "--", sys.executable, "-c", text],
        env=_environ(directory, **variables),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            one = Program(directory, process)
            one.run("multiply", 1)
            yield one
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(60)


def opscope_set(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [*CLI, "set", "--directory", str(directory), *arguments]
    return subprocess.run(command, env=_environ(directory), capture_output=True, text=True)


def test_counts_are_exact_over_changes_of_a_running_program(tmp_path: Path) -> None:
    with program(tmp_path, OPSCOPE_SAMPLING="1") as one:
        one.run("add", 1000)
        one.set("enabled=false")
        one.run("add", 1000)
        assert one.state().is_disabled
        one.set("enabled=true")
        one.run("add", 1000)
        one.set("windows=1ms/1000s")
        one.run("add", 1000)
        one.set("sampling=1")
        one.run("add", 1000)
        assert one.calls("add") == 3000
        state = one.state()
        assert (state.sampling_prob, state.window_ns, state.health.dropped) == (1.0, 0, 0)


def test_a_program_in_windows_can_be_set(tmp_path: Path) -> None:
    with program(tmp_path) as one:
        assert one.state().window_ns == 2_000_000
        one.set("windows=5ms/20ms")
        assert (one.state().window_ns, one.state().period_ns) == (5_000_000, 20_000_000)
        one.set("sampling=1e-9")
        one.run("add", 1000)
        assert one.calls("add") == 0
        one.set("sampling=1")
        one.run("add", 1000)
        assert one.calls("add") == 1000
        opscope_set(tmp_path, "--pid", str(one.process.pid), "--reset")
        one.set("enabled=true")
        assert one.state().window_ns == 2_000_000


@pytest.mark.slow
def test_torch_can_be_set_however_rarely_it_samples(tmp_path: Path) -> None:
    with program(tmp_path, TORCH, OPSCOPE_BRIDGES="torch") as one:
        assert one.state().bridges == {"torch": "attached"}
        one.set("sampling=1")
        one.run("add", 500)
        one.set("sampling=1e-9")
        one.run("add", 500)
        one.set("enabled=false")
        one.run("add", 500)
        one.set("windows=1ms/2ms", "enabled=true")
        until(lambda: one.calls("sub"), "an operator in a window", lambda: one.run("sub", 1000))
        one.set("sampling=1")
        one.run("add", 500)
        assert one.calls("add") == 1000


def test_a_forked_child_goes_on_with_what_was_set(tmp_path: Path) -> None:
    with program(tmp_path, OPSCOPE_SAMPLING="1") as one:
        one.set("enabled=false")
        one.run("fork", 100)
        snapshot = Host([str(tmp_path)], consume=False).collect()
        (child,) = (p for p in snapshot.processes if p.pid != one.process.pid)
        assert child.is_disabled
        assert one.calls("subtract", child.pid) == 0


def test_programs_that_start_later_are_set_too(tmp_path: Path) -> None:
    directory = tmp_path / "segments"
    directory.mkdir(mode=0o700)
    done = opscope_set(directory, "--service", "train*", "sampling=1", "labels=tenant")
    assert done.returncode == 0, done.stderr
    settings = {"OPSCOPE_SAMPLING": "0.25", "OPSCOPE_LABELS": "a"}
    with program(directory, OTEL_SERVICE_NAME="trainer", **settings) as one:
        assert (one.state().sampling_prob, one.state().notes["labels"]) == (1.0, "tenant")
    with program(directory, OTEL_SERVICE_NAME="other", **settings) as one:
        assert (one.state().sampling_prob, one.state().notes["labels"]) == (0.25, "a")
    assert opscope_set(directory, "--all", "--reset").returncode == 0
    with program(directory, OTEL_SERVICE_NAME="trainer", **settings) as one:
        assert (one.state().sampling_prob, one.state().notes["labels"]) == (0.25, "a")


def test_the_governor_keeps_a_program_to_its_budget(tmp_path: Path) -> None:
    with program(tmp_path, OPSCOPE_SAMPLING="0.9", OPSCOPE_MAX_OVERHEAD="0.001%") as one:
        assert one.state().overhead_budget == 1e-5
        until(
            lambda: one.state().health.adaptations,
            "the governor acts",
            lambda: one.run("multiply", 100_000),
        )
        assert one.state().sampling_prob < 0.1
        one.set("max_overhead=off")
        assert one.state().sampling_prob == 0.9
        assert one.state().overhead_budget == 0.0


def test_every_range_is_recorded_without_an_explicit_limit(tmp_path: Path) -> None:
    with program(tmp_path, OPSCOPE_SAMPLING="1") as one:
        assert one.state().overhead_budget == 0.0
    with program(tmp_path, OPSCOPE_SAMPLING="1", OPSCOPE_MAX_OVERHEAD="1%") as one:
        assert one.state().overhead_budget == 0.01
    with program(tmp_path) as one:
        assert one.state().overhead_budget == 0.005


def test_the_settings_in_force_are_shown(tmp_path: Path) -> None:
    with program(tmp_path, OTEL_SERVICE_NAME="shown", OPSCOPE_SAMPLING="1") as one:
        one.set("labels=a,b", "sampling=0.5")
        shown = json.loads(opscope_set(tmp_path, "--show", "--json").stdout)
        (process,) = shown["processes"]
        assert process["service"] == "shown"
        assert process["labels"] == ["a", "b"]
        assert (process["sampling"], process["max_overhead"]) == (0.5, 0.005)
        assert process["set"] == "sampling=0.5 labels=a,b"
        text = opscope_set(tmp_path, "--show").stdout
        assert "sampling=0.5" in text and "shown" in text


def test_only_a_written_rule_is_reported_for_later_processes(tmp_path: Path) -> None:
    done = opscope_set(tmp_path / "missing", "--all", "sampling=1")
    assert done.returncode == 1
    assert "no matching process runs now" in done.stdout
    assert "later" not in done.stdout
    assert "processes that start later keep their settings" in done.stderr
    done = opscope_set(tmp_path, "--all", "sampling=1")
    assert "applies to processes that start later (*)" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--all"], "give one of: settings like sampling=0.1, --reset, --show"),
        (["sampling=1"], "select processes: --pid PID, --service GLOB or --all"),
        (["--all", "--pid", "1", "sampling=1"], "--all cannot be combined"),
        (["--all", "sampling=2"], "sampling='2': must be a probability from 0 to 1, or windows"),
        (["colour=red"], "colour: no such setting"),
        (["--all", "colour=red"], "colour: no such setting; known: sampling, windows"),
        (["--pid", "1", "sampling=1"], "pid 1: no such observed process"),
    ],
)
def test_invalid_requests_are_refused(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = opscope_set(tmp_path, *arguments)
    assert done.returncode != 0
    assert said in " ".join(done.stderr.split())
