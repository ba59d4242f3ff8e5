"""In windows, PyTorch's operators have the same phase as when every range is recorded, and the long
ranges around them are counted and timed exactly.

Programs run with the defaults, except that windows come more often. They are compared with their
own measurements, or with a recording of every range.
"""

import json
from pathlib import Path

import pytest
import torch

from opscope.bench.truth import judge, segments
from opscope.bench.truth.segments import Sums

from .conftest import windows
from .torch_observed import counts, observed_fork

pytestmark = pytest.mark.slow

WINDOWED = {**windows(2.0, 20.0), "OPSCOPE_MAX_OVERHEAD": "off"}
# What windows estimate is compared with measured times.
RECORDED = [
    pytest.param({}, id="every"),
    pytest.param(WINDOWED, id="windows", marks=pytest.mark.alone),
]
ERRORS = 5
"""A right estimate is further off by chance once in two million times."""

# The optimizer's ranges begin and end between the clocks around its methods and those of its hooks.
INPUT_BOUND = """
import json
from time import perf_counter
import torch
from torch import nn
from torch.utils.data import DataLoader

class Rows:
    def __len__(self):
        return 1 << 30
    def __getitem__(self, index):
        row = torch.randn(64)
        for _ in range(20):
            row = row.sin()
        return row, index % 10

torch.set_num_threads(1)
model = nn.Sequential(*(nn.Linear(64, 64) for _ in range(12)))  # so that a step takes long
optimizer, loss = torch.optim.AdamW(model.parameters()), nn.CrossEntropyLoss()
batches = iter(DataLoader(Rows(), batch_size=16))
loading = updating = within = opened = 0.0

def open(*_):
    global opened
    opened = perf_counter()

def close(*_):
    global within
    within += perf_counter() - opened

optimizer.register_step_pre_hook(open)
optimizer.register_step_post_hook(close)
for _ in range(STEPS):
    start = perf_counter()
    inputs, targets = next(batches)
    loading += perf_counter() - start
    loss(model(inputs), targets).backward()
    start = perf_counter()
    optimizer.step()
    optimizer.zero_grad()
    updating += perf_counter() - start
print(json.dumps({"data": (loading, loading), "optimizer": (within, updating)}))
"""

WORKERS = """
import numpy as np
import torch
from torch.utils.data import DataLoader

class Rows:
    def __len__(self):
        return STEPS * 4
    def __getitem__(self, index):
        row = torch.randn(64)
        for _ in range(200):
            row = row.sin()
        column = np.ones(64)
        for _ in range(200):
            column = np.sqrt(column)
        return row, column

torch.set_num_threads(1)
for row, column in DataLoader(Rows(), batch_size=4, num_workers=2, multiprocessing_context="fork"):
    row.cos()
"""

# Without an accelerator there is no pinned memory: the batches copy themselves.
PINNED = """
import queue, threading
import torch
from torch.utils.data._utils.pin_memory import _pin_memory_loop

class Batch:
    def pin_memory(self):
        return torch.ones(3).sin()

if hasattr(torch, "accelerator"):  # from 2.6 on
    torch.accelerator.set_device_index = lambda index: None
fetched, pinned, done = queue.Queue(), queue.Queue(), threading.Event()
loop = threading.Thread(target=_pin_memory_loop, args=(fetched, pinned, 0, done, "cpu"))
loop.start()
for index in range(50):
    fetched.put((index, Batch()))
    pinned.get()[1].cos()
done.set()
loop.join()
"""

# Around each long range and within it a clock is read: its time lies between the two.
OUTER = """
import json
from collections import Counter
from time import perf_counter
import torch
from torch import nn
from torch.utils.data import DataLoader

STEP = "Optimizer.step#AdamW.step"
NEXT = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
around, within, count, own, called = (Counter() for _ in range(5))
opened = {}

def open(name):
    opened[name] = perf_counter()

def close(name):
    within[name] += perf_counter() - opened[name]

class Rows:
    def __len__(self):
        return 1 << 30
    def __getitem__(self, index):
        if index % 4 == 0:
            open(NEXT)
        return torch.randn(4096).sin()

def collate(rows):
    batch = torch.stack(rows)
    close(NEXT)
    return batch

def busy(seconds):
    start = perf_counter()
    while perf_counter() - start < seconds:
        pass

def block(name, turns, seconds):
    start = perf_counter()
    with torch.profiler.record_function(name):
        open(name)
        for _ in range(turns):
            before = perf_counter()
            torch.sin(wide, out=other)
            alone = perf_counter()
            busy(seconds)
            own[name] += perf_counter() - alone
            called[name] += alone - before
        close(name)
    around[name] += perf_counter() - start
    count[name] += 1

torch.set_num_threads(1)
wide, other = torch.randn(32, 32), torch.empty(32, 32)
model = nn.Sequential(*(nn.Linear(64, 64) for _ in range(6)))
optimizer = torch.optim.AdamW(model.parameters())
optimizer.register_step_pre_hook(lambda *_: open(STEP))
optimizer.register_step_post_hook(lambda *_: close(STEP))
batches = iter(DataLoader(Rows(), batch_size=4, collate_fn=collate))
for step in range(STEPS):
    start = perf_counter()
    batch = next(batches)
    around[NEXT] += perf_counter() - start
    count[NEXT] += 1
    model(batch.view(-1, 64)).square().mean().backward()
    start = perf_counter()
    optimizer.step()
    around[STEP] += perf_counter() - start
    count[STEP] += 1
    block("short", 2, 0.0005)
    if step % 10 == 0:
        block("longer than a window", 5, 0.001)
    if step % 100 == 0:
        block("longer than a period", 50, 0.001)
print(json.dumps([around, within, count, own, called]))
"""


Outer = tuple[Sums, list[dict[str, float]]]


def _recorded(directory: Path, program: str, steps: int, **variables: str) -> Sums:
    directory.mkdir()
    observed_fork(directory, program.replace("STEPS", str(steps)), **variables)
    return segments.read(str(directory / "segments"))


def _by_phase(sums: Sums, op: str) -> dict[str, float]:
    return {phase: calls for (name, phase), calls in sums.calls.items() if name == op and calls}


Phases = tuple[Sums, dict[str, tuple[float, float]]]


@pytest.fixture(scope="module", params=RECORDED)
def input_bound(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Phases:
    """What was recorded, and for how long the program says it was at each phase: at least, and at
    most."""
    directory = tmp_path_factory.mktemp("input_bound")
    steps = "2000" if request.param else "300"
    said = observed_fork(directory, INPUT_BOUND.replace("STEPS", steps), **request.param)
    return segments.read(str(directory / "segments")), json.loads(said)


def test_a_phase_has_the_time_that_the_program_is_at_it(input_bound: Phases) -> None:
    sums, measured = input_bound
    for phase, (least_s, most_s) in measured.items():
        self_s = sum(seconds for (_, name), seconds in sums.self_s.items() if name == phase)
        error = judge.error_of_phase(sums, phase)
        assert error is not None, phase
        assert error < 0.3 * most_s, phase
        allowed_s = 0.05 * most_s + ERRORS * error
        assert least_s - allowed_s <= self_s <= most_s + allowed_s, phase


def test_the_data_sets_own_operators_are_data(input_bound: Phases) -> None:
    sums, _ = input_bound
    calls = _by_phase(sums, "aten::sin")
    assert calls.get("data", 0.0) >= 0.97 * sum(calls.values()) > 0


def test_the_optimizers_own_operators_are_of_the_optimizer(input_bound: Phases) -> None:
    sums, _ = input_bound
    assert _by_phase(sums, "aten::addcdiv_").keys() == {"optimizer"}


def test_the_models_operators_are_forward(input_bound: Phases) -> None:
    sums, _ = input_bound
    assert _by_phase(sums, "aten::linear").keys() == {"forward"}


@pytest.mark.parametrize("variables", RECORDED)
def test_operators_of_a_loaders_workers_have_phase_data(
    tmp_path: Path, variables: dict[str, str]
) -> None:
    sums = _recorded(tmp_path / "program", WORKERS, 300, **variables)
    # PyTorch gives the worker's thread a name, from 2.5 on.
    is_known = hasattr(torch.multiprocessing, "_set_thread_name")
    assert _by_phase(sums, "aten::sin").keys() == {"data" if is_known else "forward"}
    assert _by_phase(sums, "numpy::sqrt").keys() == {"data" if is_known else "other"}
    assert _by_phase(sums, "aten::cos").keys() <= {"forward"}


@pytest.mark.skipif(
    not hasattr(torch.multiprocessing, "_set_thread_name"), reason="PyTorch names no threads"
)
def test_operators_of_a_loaders_thread_that_pins_memory_have_phase_data(tmp_path: Path) -> None:
    observed_fork(tmp_path, PINNED)
    phases = counts(tmp_path / "segments").phases
    assert phases["aten::sin"] == {"data"}
    assert phases["aten::cos"] == {"forward"}


@pytest.fixture(scope="module", params=RECORDED)
def outer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Outer:
    """What was recorded, and what the program measured: around, within, count, own, called."""
    directory = tmp_path_factory.mktemp("outer")
    said = observed_fork(directory, OUTER.replace("STEPS", "500"), **request.param)
    return segments.read(str(directory / "segments")), json.loads(said)


def test_long_ranges_are_counted_exactly(outer: Outer) -> None:
    sums, (_, _, count, *_) = outer
    assert len(count) == 5
    assert {name: sum(_by_phase(sums, name).values()) for name in count} == count


def test_long_ranges_are_timed_exactly(outer: Outer) -> None:
    sums, (around, within, *_) = outer
    for name in around:
        total_s = sum(seconds for (op, _), seconds in sums.total_s.items() if op == name)
        # The clocks are not the same.
        assert within[name] * 0.999 <= total_s <= around[name] * 1.001, name


def test_the_own_time_of_long_ranges_is_within_its_error(outer: Outer) -> None:
    sums, (around, _, _, own, called) = outer
    is_sampled = any(sums.calls[key] != count for key, count in sums.samples.items())
    assert len(own) == 3
    for name, least_s in own.items():
        self_s = sum(seconds for (op, _), seconds in sums.self_s.items() if op == name)
        variances = [value for (op, _), value in sums.self_variance.items() if op == name]
        assert variances or not is_sampled, name
        error = sum(variances) ** 0.5
        assert error < 0.2 * least_s, name
        # A block's own time has a part of each call of the operator, and the range's two ends. On
        # a slow machine these are several percent of a short block.
        assert least_s * 0.95 - ERRORS * error <= self_s, name
        assert called[name] < 0.2 * least_s, name
        assert self_s <= around[name] * 1.001 + ERRORS * error, name
