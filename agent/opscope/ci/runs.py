"""Run two commands in turns, and measure each run: time, instructions and operators.

Every run is observed (attachment/launch.py) and has a directory of segments for itself. Every other
round runs B first, so that a machine that slows down or warms up disturbs both sides alike.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Timer
from typing import IO

from opscope.attachment.launch import environment
from opscope.ci.instructions import InstructionCounter
from opscope.errors import AgentError
from opscope.reports.recording import Operator, Slice, whole

_SHOWN_LINES = 15


@dataclass(frozen=True)
class Run:
    """What one run of a command took."""

    wall_s: float
    cpu_s: float
    """Of the command and of the processes that it started and waited for."""
    instructions: int | None
    """In user mode; None: the machine has no counter."""
    operators: dict[Operator, Slice] = field(default_factory=dict)


@dataclass(frozen=True)
class Pair:
    a: tuple[Run, ...]
    b: tuple[Run, ...]
    """One run per round, as of `a`."""
    no_instructions: str
    """Why instructions are not counted; empty if they are."""


def interleaved(
    commands: tuple[Sequence[str], Sequence[str]],
    *,
    rounds: int,
    warmup: int = 1,
    sampling: str = "1",
    timeout_s: float | None = None,
    told: Callable[[str], object] = lambda _: None,
) -> Pair:
    """Runs both commands `warmup + rounds` times; the first `warmup` rounds do not count.

    `told` gets a line of progress before each round. Raises AgentError if a run fails, with the
    end of its output, or takes longer than `timeout_s`.
    """
    kept: tuple[list[Run], list[Run]] = ([], [])
    with InstructionCounter() as counter:
        for turn in range(warmup + rounds):
            warming = turn < warmup
            told("warming up" if warming else f"round {turn - warmup + 1} of {rounds}")
            for side in (0, 1) if turn % 2 == 0 else (1, 0):
                done = _run(commands[side], "AB"[side], counter, sampling, timeout_s)
                if not warming:
                    kept[side].append(done)
        return Pair(tuple(kept[0]), tuple(kept[1]), counter.reason)


def _run(
    command: Sequence[str],
    name: str,
    counter: InstructionCounter,
    sampling: str,
    timeout_s: float | None,
) -> Run:
    shared = Path("/dev/shm")
    with (
        tempfile.TemporaryDirectory(
            prefix="opscope-compare-", dir=shared if shared.is_dir() else None
        ) as directory,
        tempfile.TemporaryFile() as output,
    ):
        environ = environment(os.environ) | {
            "OPSCOPE_DIR": directory,
            "OPSCOPE_SAMPLING": sampling,
            "OPSCOPE_MAX_OVERHEAD": "off",
        }
        before, begin = counter.read(), time.perf_counter()
        cpu_s = _ended(command, name, environ, output, timeout_s)
        wall_s, after = time.perf_counter() - begin, counter.read()
        counted = None if after is None else after - (before or 0)
        return Run(wall_s, cpu_s, counted, whole([directory]))


def _ended(
    command: Sequence[str],
    name: str,
    environ: dict[str, str],
    output: IO[bytes],
    timeout_s: float | None,
) -> float:
    """Runs the command to its end; the seconds of CPU time that it took."""
    try:
        process = subprocess.Popen(
            list(command),
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # so that all of it can be ended together
        )
    except OSError as error:
        raise AgentError(f"{name}: cannot run {command[0]}: {error.strerror}") from error
    late = False

    def end() -> None:
        nonlocal late
        late = True
        _kill(process.pid)

    timer = Timer(timeout_s, end) if timeout_s else None
    if timer is not None:
        timer.daemon = True
        timer.start()
    try:
        _, status, usage = os.wait4(process.pid, 0)
    except BaseException:
        _kill(process.pid)
        process.wait()
        raise
    finally:
        if timer is not None:
            timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    if late:
        raise AgentError(f"{name} ran for more than {timeout_s:g} s{_end_of(output)}")
    if process.returncode != 0:
        raise AgentError(f"{name} ended with status {process.returncode}{_end_of(output)}")
    return usage.ru_utime + usage.ru_stime


def _kill(session: int) -> None:
    try:
        os.killpg(session, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it has ended by itself


def _end_of(output: IO[bytes]) -> str:
    output.seek(0)
    lines = output.read().decode(errors="replace").splitlines()[-_SHOWN_LINES:]
    return ":\n" + "\n".join(f"  {line}" for line in lines) if lines else "; it printed nothing"
