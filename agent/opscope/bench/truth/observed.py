"""Run an observed program in a separate process: its work, and the recorded sums."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from opscope.attachment.launch import environment
from opscope.bench import segment_directory
from opscope.bench.truth import segments
from opscope.bench.truth.loads import Load
from opscope.bench.truth.programs import PROGRAMS, Done
from opscope.errors import OpscopeError
from opscope.host.processor_time import MainThread, ProcessorTime, ProcessorTimes, of_threads
from opscope.segments.liveness import process_start

_STEPS = "from opscope.bench.truth.programs import main; main()"
_LIMIT_S = 240
"""Extra seconds beyond ten times the requested duration."""

_READ_S = 0.2

EVERY_RANGE = {"OPSCOPE_SAMPLING": "1", "OPSCOPE_MAX_OVERHEAD": "off"}
"""Environment variables that record everything. Without them, the defaults apply."""


@dataclass(frozen=True)
class Observed:
    done: Done
    sums: segments.Sums
    """For the time in which it made its steps."""
    children: Counter[str]


def run(
    name: str,
    seconds: float,
    load: Load,
    variables: Mapping[str, str],
    *,
    count_children: bool = False,
) -> Observed:
    """Observes the program for `seconds`. Raises OpscopeError if it fails."""
    asked = ["children"] if count_children else []
    command = [*load.prefix, sys.executable, "-c", _STEPS, name, str(seconds), *asked]
    with segment_directory() as directory:
        environ = _environ(name, directory, variables)
        with _started(command, environ, seconds) as process, load.around(process.pid):
            assert process.stdout is not None
            ready = process.stdout.readline()
            recorded = segments.Directory(directory)
            with _processor_time(process.pid) as processor:
                before = recorded.read(processor.main) if ready else segments.Sums()
                said, _ = process.communicate("\n" if ready else None)
        done, children = json.loads(said)
        sums = recorded.read(processor.main).since(before).with_waiting(*processor.since_first)
    return Observed(Done(*done), sums, Counter(children))


class _Processor:
    """Times on a processor and waiting for one, of a process and those of its group, read as long
    as it lives."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._times = ProcessorTimes()
        self._children: dict[int, ProcessorTimes] = {}
        self._start = process_start(pid) or 0
        self.main: dict[int, MainThread] = {}
        """What the process's main thread has had, by the process's id."""
        self._add()
        self._first = self._times.sums
        self.is_over = threading.Event()

    def read(self) -> None:
        while not self.is_over.wait(_READ_S):
            self._add()
            for child in _children(self._pid):
                self._children.setdefault(child, ProcessorTimes()).add(of_threads(child))

    def _add(self) -> None:
        threads = of_threads(self._pid)
        self._times.add(threads)
        if threads is not None and self._pid in threads:
            self.main = {self._pid: MainThread.of(threads[self._pid], self._start)}

    @property
    def since_first(self) -> tuple[ProcessorTime, ProcessorTime]:
        """Of the process, and of its children."""
        now, first = self._times.sums, self._first
        children = [times.sums for times in self._children.values()]
        return (
            ProcessorTime(now.used - first.used, now.waited - first.waited),
            ProcessorTime(sum(one.used for one in children), sum(one.waited for one in children)),
        )


def _children(group: int) -> list[int]:
    """The processes of that group, without the one that leads it."""
    found = []
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and int(name) != group and os.getpgid(int(name)) == group:
                found.append(int(name))
        except ProcessLookupError:
            continue
    return found


@contextmanager
def _processor_time(pid: int) -> Iterator[_Processor]:
    processor = _Processor(pid)
    reader = threading.Thread(target=processor.read)
    reader.start()
    try:
        yield processor
    finally:
        processor.is_over.set()
        reader.join()


def output(code: str, name: str, seconds: float, variables: Mapping[str, str]) -> str:
    """What that code prints in an observed process, with the program and the seconds as arguments.

    Raises OpscopeError if it fails.
    """
    with segment_directory() as directory:
        command = [sys.executable, "-c", code, name, str(seconds)]
        with _started(command, _environ(name, directory, variables), seconds) as process:
            said, _ = process.communicate()
    return said


def _environ(name: str, directory: str, variables: Mapping[str, str]) -> dict[str, str]:
    bare = {key: value for key, value in os.environ.items() if not key.startswith("OPSCOPE")}
    return environment({**bare, **PROGRAMS[name].environ, "OPSCOPE_DIR": directory, **variables})


@contextmanager
def _started(
    command: list[str], environ: Mapping[str, str], seconds: float
) -> Iterator[subprocess.Popen[str]]:
    """A process that leads its own group. Raises OpscopeError if it fails; if the caller leaves the
    block first, kills it with the processes that it started."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            command,
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
        late = threading.Timer(_LIMIT_S + 10 * seconds, _kill, (process.pid,))
        late.start()
        try:
            yield process
        finally:
            late.cancel()
            late.join()
            if process.poll() is None:
                _kill(process.pid)
                process.wait()
        if process.returncode:
            errors.seek(0)
            raise OpscopeError(f"{command[-2]}: {errors.read()[-2000:] or process.returncode}")


def _kill(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass
