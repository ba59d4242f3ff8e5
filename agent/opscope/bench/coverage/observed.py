"""Run a program attached, sampled by perf and traced at the same time, and compare the two."""

import os
import pickle
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from opscope.attachment.launch import environment
from opscope.bench import segment_directory
from opscope.bench.coverage.programs import Program
from opscope.bench.coverage.samples import INTERPRETER, OWN, read_samples
from opscope.bench.coverage.spans import Spans
from opscope.errors import OpscopeError

_PROGRAM = "from opscope.bench.coverage.programs.driver import main; main()"
_LIMIT_S = 300
_PLACES = 25
_RECORD = """
perf record --quiet --event cpu-clock --freq 2000 --clockid mono --delay -1 --call-graph dwarf,4096
""".split()


@dataclass(frozen=True)
class Shares:
    """From 0 to 1; `outside` counts samples outside of ranges by their place."""

    named: float
    compiled: float
    wall: float
    interpreter: float
    samples: int
    outside: dict[str, int]


def observe(program: Program, seconds: float) -> Shares:
    """Runs the program for `seconds`. Raises OpscopeError if perf or the program fails."""
    if shutil.which("perf") is None:
        raise OpscopeError("perf is not installed; it tells the interpreter's time from others'")
    with segment_directory() as shared:
        directory = Path(shared)
        control, answer = directory / "control", directory / "answer"
        os.mkfifo(control)
        os.mkfifo(answer)
        recorded, written = directory / "perf.data", directory / "spans"
        command = [
            *(*_RECORD, "--output", str(recorded), "--control", f"fifo:{control},{answer}", "--"),
            *(sys.executable, "-c", _PROGRAM, program.name, str(seconds)),
            *(str(control), str(answer), str(written)),
        ]
        _end(command, _environ(program, shared))
        start_ns, end_ns, times = pickle.loads(written.read_bytes())
        return _compare(recorded, Spans(*times), start_ns, end_ns)


def _environ(program: Program, directory: str) -> dict[str, str]:
    bare = {key: value for key, value in os.environ.items() if not key.startswith("OPSCOPE")}
    every_range = {"OPSCOPE_SAMPLING": "1", "OPSCOPE_MAX_OVERHEAD": "off"}
    return environment({**bare, **program.environ, "OPSCOPE_DIR": directory, **every_range})


def _end(command: list[str], environ: dict[str, str]) -> None:
    done = subprocess.run(
        command, env=environ, capture_output=True, text=True, timeout=_LIMIT_S, check=False
    )
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
        raise OpscopeError(f"perf or the program failed: {said[-1]}")


def _compare(recorded: Path, spans: Spans, start_ns: int, end_ns: int) -> Shares:
    total = interpreter = named = compiled = 0
    outside: Counter[str] = Counter()
    for sample in read_samples(recorded):
        if not start_ns <= sample.ns < end_ns or sample.owner == OWN:
            continue
        total += 1
        if sample.owner == INTERPRETER:
            interpreter += 1
            continue
        is_named = spans.contain(sample.tid, sample.ns)
        named += is_named
        compiled += spans.contain(sample.tid, sample.ns, compiled=True)
        if not is_named:
            outside[f"{sample.owner}: {sample.symbol}"] += 1
    others = total - interpreter
    if others == 0:
        raise OpscopeError("perf has taken no sample of the program's work")
    return Shares(
        named / others,
        compiled / others,
        spans.covered_ns(start_ns, end_ns) / (end_ns - start_ns),
        interpreter / total,
        total,
        dict(outside.most_common(_PLACES)),
    )
