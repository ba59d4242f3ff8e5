"""The recorded counts of a PyTorch program, and programs to count."""

import ctypes
import inspect
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile
from torch.utils.data import DataLoader, TensorDataset

from opscope.attachment.launch import environment
from opscope.host.host import Host
from opscope.host.snapshot import Snapshot
from tests.forked_programs import WITH_EXPORT, WITH_TORCH, ForkedPrograms
from tests.time_limit import LIMIT_S

TIMEOUT_S = max(600.0, LIMIT_S)

Step = Callable[[], object]


class Counts(NamedTuple):
    """Calls by operator, summed over phases, labels and processes."""

    calls: Counter[str]
    self_s: dict[str, float]
    phases: dict[str, set[str]]
    snapshot: Snapshot

    @property
    def total_calls(self) -> int:
        return sum(self.calls.values())

    def share(self, op: str) -> float:
        return self.calls[op] / self.total_calls

    def self_share(self, op: str) -> float:
        return self.self_s[op] / sum(self.self_s.values())


def counts(directory: Path | str) -> Counts:
    """The counts of all segments in the directory, which it keeps."""
    snapshot = Host([str(directory)], consume=False, max_series=100_000).collect()
    assert snapshot.bad_segments == {}
    calls: Counter[str] = Counter()
    self_s: dict[str, float] = {}
    phases: dict[str, set[str]] = {}
    for key, count, seconds in zip(snapshot.keys, snapshot.calls, snapshot.self_s, strict=True):
        calls[key.op] += round(float(count))
        self_s[key.op] = self_s.get(key.op, 0.0) + float(seconds)
        phases.setdefault(key.op, set()).add(key.phase)
    return Counts(calls, self_s, phases, snapshot)


def profiler(*more: ProfilerActivity, memory: bool = False) -> profile:
    """torch.profiler, of operators and `more`. It keeps its events, which PyTorch 2.4 does
    unasked."""
    is_asked = "acc_events" in inspect.signature(profile).parameters
    keeps: dict[str, Any] = {"acc_events": True} if is_asked else {}
    return profile(activities=[ProfilerActivity.CPU, *more], profile_memory=memory, **keeps)


def profiled_calls(profiled: profile) -> Counter[str]:
    """By operator, of what was profiled. The profiler's averages leave out an operator called alone
    by one of its own name (aten::sum by aten::sum), so this is from its raw events."""
    results: Any = profiled.profiler
    return Counter(event.name() for event in results.kineto_results.events())


def pointers_in_library(library: str, symbol: str) -> int:
    """Words of that library's own writable memory that have the address of its function."""
    with open("/proc/self/maps") as maps:
        lines = [line.split() for line in maps if line.rstrip().endswith(f"/{library}")]
    function = ctypes.CDLL(lines[0][5])[symbol]
    address = ctypes.cast(function, ctypes.c_void_p).value
    count = 0
    for place, rights, *_ in lines:
        if rights.startswith("rw"):
            start, end = (int(part, 16) for part in place.split("-"))
            words = memoryview(ctypes.string_at(start, end - start)).cast("Q")
            count += sum(word == address for word in words)
    return count


def train_step() -> Step:
    """Loads a batch, runs it forward and backward, and makes a step of Adam."""
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.Adam(model.parameters())
    data = TensorDataset(torch.randn(8, 8), torch.randint(0, 3, (8,)))

    def step() -> None:
        for inputs, targets in DataLoader(data, batch_size=4):
            with torch.profiler.record_function("step"):
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(inputs), targets).backward()
                optimizer.step()

    return step


def transformer_step() -> Step:
    block = nn.TransformerEncoderLayer(16, 2, dim_feedforward=32, batch_first=True)
    inputs = torch.randn(2, 4, 16)

    def step() -> None:
        block(inputs).square().mean().backward()

    return step


def working_step() -> Step:
    """Forward and backward of operators that take much longer than it takes to call them."""
    model = nn.Sequential(nn.Linear(32, 256), nn.Tanh(), nn.GELU(), nn.Sigmoid(), nn.LayerNorm(256))
    inputs = torch.randn(512, 32)

    def step() -> None:
        model(inputs).softmax(1).square().sum().backward()

    return step


def observed(directory: Path, program: str, **variables: str) -> str:
    """The output of an unmodified program, observed with p=1 until it ends regularly."""
    return _output(program, directory, observing(directory, variables))


def unobserved(directory: Path, program: str, **variables: str) -> str:
    """The output of a program that attaches itself, with p=1."""
    return _output(program, directory, _settings(directory, variables))


def observed_fork(directory: Path, program: str, **variables: str) -> str:
    """As `observed`, in a fork of a process that has imported PyTorch: much faster, for programs
    to which it does not matter what the import does."""
    return _output(program, directory, observing(directory, variables), WITH_TORCH)


def observed_fork_that_exports(directory: Path, program: str, **variables: str) -> str:
    """As `observed_fork`, with the modules of torch.export imported too."""
    return _output(program, directory, observing(directory, variables), WITH_EXPORT)


def fork_that_exports(directory: Path, program: str, **variables: str) -> str:
    """As `observed_fork_that_exports`, of a program that attaches itself."""
    return _output(program, directory, _settings(directory, variables), WITH_EXPORT)


def unobserved_fork(directory: Path, program: str, **variables: str) -> str:
    """As `unobserved`, in a fork of a process that has imported PyTorch."""
    return _output(program, directory, _settings(directory, variables), WITH_TORCH)


def _output(
    program: str,
    directory: Path,
    environ: Mapping[str, str],
    server: "ForkedPrograms | None" = None,
) -> str:
    script = directory / "program.py"  # a file, as TorchScript reads the source of what it compiles
    script.write_text(program)
    if server is not None:
        done = server.run(script, directory, environ, TIMEOUT_S)
    else:
        done = run([sys.executable, str(script)], directory, environ)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def run(
    command: list[str], directory: Path, environ: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=environ, cwd=directory, capture_output=True, text=True, timeout=TIMEOUT_S
    )


def observing(directory: Path, variables: Mapping[str, str]) -> dict[str, str]:
    """The environment of an observed program, with p=1 unless `variables` say otherwise."""
    return environment(_settings(directory, variables))


def _settings(directory: Path, variables: Mapping[str, str]) -> dict[str, str]:
    """Segments are in `directory`/segments."""
    bare = {key: value for key, value in os.environ.items() if not key.startswith("OPSCOPE")}
    own = {"OPSCOPE_DIR": str(directory / "segments"), "OPSCOPE_SAMPLING": "1"}
    return {**bare, **own, "OMP_NUM_THREADS": "1", **variables}
