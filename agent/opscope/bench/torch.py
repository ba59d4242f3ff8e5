"""The cost of observing PyTorch for small models, which spend their time calling operators.

`attached` uses the defaults: all ranges within windows of 2 ms every 250 ms. Other cases do the
same work with a probability for each operator, and under torch.profiler. All sides run in this
process; attaching and detaching happen between the timed loops. Fresh processes time the import.

The cost of attaching is smaller than the variation of a machine's speed between two seconds: a
ratio of attached to unattached seconds has an error of a percent, and the mean of many still half a
percent. Slices of a few milliseconds are alike enough, but most of them contain no window, and the
few others have all of the cost. So a case has two parts, which together are the effect of attaching
on a program; each is measured separately:

`..._outside`: attached with the defaults but without windows, relative to unattached. It compares
the fastest steps of neighbouring slices of some milliseconds. The fastest step includes every cost
that all steps pay; outside of windows, only the window thread causes occasional costs.

`..._by_window`: the cost of windows. It compares 2 ms with a window, including its opening, its
closing and the following millisecond, to neighbouring work without one, and scales this to the
250 ms from one window to the next. Here the program's thread opens and closes the window; the CPU
time of the window thread, which does so by default, is added, so opening and closing count twice.

The case is 1 plus the deviations of both parts from 1. Intervals are of medians, for any
distribution; the interval of a case is the root of the sum of squares of its parts'. Memory layout
can change a part by another thousandth from one process to the next.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from inspect import signature
from itertools import repeat
from math import hypot
from pathlib import Path
from statistics import median
from time import process_time_ns, thread_time_ns
from typing import Any

import torch
from torch import nn

from opscope._native import lib
from opscope.attachment.launch import environment
from opscope.bench import (
    RATIO,
    Effort,
    Result,
    attached,
    interleaved,
    median_interval,
    median_ratio,
    segment_directory,
)
from opscope.bench.attach import process_ns
from opscope.bridges import torch as bridge
from opscope.config import load
from opscope.errors import OpscopeError
from opscope.record import recorder

_ATTACHED_BOUND = 1.005
_SIDE_NS = 60_000_000
"""Seconds for one side of a round, if the difference is large."""
_SLICE_NS = 4_000_000
_SLICE_STEPS = 3
"""Minimum seconds of a slice, whose fastest step is used."""
_WARM_NS = 1_000_000
"""Seconds after attaching and detaching, before a slice."""
_STRETCH_NS = 1_000_000_000
"""Seconds over which the window thread's own time is measured: several windows."""
_AFTERMATH_NS = 1_000_000
"""Seconds after a window that count towards its cost."""
_NEVER_MS = 1e8
"""A period between windows that is longer than any bench."""

Step = Callable[[], object]
State = Callable[[], AbstractContextManager[Any]]


def measure(effort: Effort) -> Iterator[Result]:
    if recorder.status().running:
        raise OpscopeError("this process is observed already; run it outside of opscope")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # otherwise a small model spends its time waking threads
    try:
        with segment_directory() as directory:
            for case, step, pairs in (  # longer steps vary more
                ("mlp_infer", _mlp_infer(), 1201),
                ("train_step", _train_step(), 2401),
                ("transformer_step", _transformer_step(), 4001),
            ):
                yield from _steps(case, step, pairs, directory, effort)
            yield from _window_range(directory, effort)
            yield from _import_torch(directory, effort)
    finally:
        torch.set_num_threads(threads)


# ---- models ----------------------------------------------------------------------------------


def _mlp_infer() -> Step:
    model = nn.Sequential(
        nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)
    ).eval()
    inputs = torch.randn(32, 64)

    def step() -> object:
        with torch.inference_mode():
            return model(inputs)

    return step


def _train_step() -> Step:
    model = nn.Sequential(nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 10))
    optimizer = torch.optim.Adam(model.parameters())
    inputs, targets = torch.randn(16, 32), torch.randint(10, (16,))
    loss = nn.CrossEntropyLoss()
    return partial(_train, optimizer, lambda: loss(model(inputs), targets))


def _transformer_step() -> Step:
    block = nn.TransformerEncoderLayer(64, 4, dim_feedforward=128, batch_first=True, dropout=0.0)
    optimizer = torch.optim.Adam(block.parameters())
    inputs = torch.randn(8, 16, 64)
    return partial(_train, optimizer, lambda: block(inputs).square().mean())


def _train(optimizer: torch.optim.Optimizer, forward: Callable[[], torch.Tensor]) -> None:
    optimizer.zero_grad()
    forward().backward()
    optimizer.step()


# ---- comparisons ------------------------------------------------------------------------------


def _steps(case: str, step: Step, pairs: int, directory: str, effort: Effort) -> Iterator[Result]:
    config = load({}, os.devnull)
    quiet = _attached(directory, window_ms=config.window_ms, period_ms=_NEVER_MS)
    driven = _attached(directory, window_ms=config.window_ms, period_ms=config.period_ms)
    outside = _outside(step, quiet, effort.rounds_of(pairs))
    thread = _thread_shares(step, driven, effort.rounds_of(9))
    windows = _windows(step, quiet, effort.rounds_of(1201), config.window_ms, config.period_ms)
    yield from _whole(case, outside, windows, thread)
    few = max(1, round(effort.count_of(_SIDE_NS) / _loop_ns(step, 20)))
    ns = interleaved(
        effort.rounds_of(11),
        {
            "unattached": _side(nullcontext, step, few),
            "p01": _side(_attached(directory, sampling=0.01), step, few),
            "p1": _side(_attached(directory, sampling=1.0), step, few),
            "torch_profiler": _side(_profiled, step, max(1, few // 10)),
        },
    )
    for side in ("p01", "p1", "torch_profiler"):
        yield _ratio(f"{case}_{side}", ns, side, "unattached")


def _whole(
    case: str, outside: list[float], windows: list[float], thread: list[float]
) -> Iterator[Result]:
    """The case and its two parts, from the ratios that each part alone has."""
    by_window = _together(_with_interval(windows), _with_interval(thread))
    parts = {
        "": _together(_with_interval(outside), by_window),
        "_outside": _with_interval(outside),
        "_by_window": by_window,
    }
    for name, (value, low, high) in parts.items():
        yield Result(
            "torch",
            case + name,
            value,
            RATIO,
            "unattached",
            None if name else _ATTACHED_BOUND,
            len(windows if name == "_by_window" else outside),
            interval=(low, high),
        )


def _with_interval(ratios: list[float]) -> tuple[float, float, float]:
    return median(ratios), *median_interval(ratios)


def _together(*parts: tuple[float, float, float]) -> tuple[float, float, float]:
    """Combines ratios with intervals: 1 plus their deviations from 1."""
    value = 1 + sum(part - 1 for part, _, _ in parts)
    below = hypot(*(part - low for part, low, _ in parts))
    above = hypot(*(high - part for part, _, high in parts))
    return value, value - below, value + above


def _outside(step: Step, attached: State, pairs: int) -> list[float]:
    """For each pair of slices, the time of a step with `attached` relative to without."""
    step_ns = _loop_ns(step, 20)
    warm = max(1, round(_WARM_NS / step_ns))
    count = max(_SLICE_STEPS, round(_SLICE_NS / step_ns))

    def on() -> float:
        with attached():
            _loop_ns(step, warm)
            return _fastest_ns(step, count)

    def off() -> float:
        with attached():
            pass  # both sides then include the effect of starting and stopping on caches
        _loop_ns(step, warm)
        return _fastest_ns(step, count)

    ns = interleaved(pairs, {"on": on, "off": off})
    return [on_ns / off_ns for on_ns, off_ns in zip(ns["on"], ns["off"], strict=True)]


def _windows(
    step: Step, attached: State, pairs: int, window_ms: float, period_ms: float
) -> list[float]:
    """For each window and the same work without it, the relative time of a step."""
    step_ns = _loop_ns(step, 20)
    within = max(1, round(window_ms * 1e6 / step_ns))
    after = max(1, round(_AFTERMATH_NS / step_ns))

    def window() -> float:
        start = process_time_ns()
        lib.opscope_recorder_window_begin(1.0)
        _loop_ns(step, within)
        lib.opscope_recorder_window_end()
        _loop_ns(step, after)
        return process_time_ns() - start

    def without() -> float:
        start = process_time_ns()
        _loop_ns(step, within)
        _loop_ns(step, after)
        return process_time_ns() - start

    with attached():
        ns = interleaved(pairs, {"window": window, "without": without})
    # Steps are whole, windows are not. The work in a window is taken as the work that fits into its
    # length without one, which is more than it contains.
    work_ns = median(ns["without"]) * within / (within + after)
    scale = window_ms / work_ns / period_ms
    return [1 + (on - off) * scale for on, off in zip(ns["window"], ns["without"], strict=True)]


def _thread_shares(step: Step, attached: State, stretches: int) -> list[float]:
    """For each stretch, the CPU time of all threads relative to that without the window thread.
    Others also work: on a GPU, autograd has a thread for each device."""

    def stretch() -> float:
        start_ns, process_ns, windows_ns = thread_time_ns(), process_time_ns(), _windows_thread_ns()
        while thread_time_ns() - start_ns < _STRETCH_NS:
            step()
        process_ns = process_time_ns() - process_ns
        return process_ns / (process_ns - (_windows_thread_ns() - windows_ns))

    with attached():
        stretch()  # includes the start of the thread
        return [stretch() for _ in range(stretches)]


def _windows_thread_ns() -> int:
    """How long the window thread has run on a processor, by the scheduler."""
    for thread in Path("/proc/self/task").iterdir():
        if (thread / "comm").read_text() == "opscope-window\n":
            return int((thread / "schedstat").read_text().split()[0])
    return 0


def _window_range(directory: str, effort: Effort) -> Iterator[Result]:
    """The cheapest operator, in place on one number, with a window always open."""
    one = torch.ones(1)
    count = effort.count_of(20_000)

    def step() -> object:
        return one.add_(one)

    ns = interleaved(
        effort.rounds_of(41),
        {
            "empty pair": _side(_empty_pair, step, count),
            "window_range": _side(_in_window(directory), step, count),
        },
    )
    yield _ratio("window_range", ns, "window_range", "empty pair", 1.3)


def _import_torch(directory: str, effort: Effort) -> Iterator[Result]:
    bare = {key: value for key, value in os.environ.items() if not key.startswith("OPSCOPE")}
    attached = environment(bare | {"OPSCOPE_DIR": directory})
    ns = interleaved(
        effort.rounds_of(15),
        {
            "unattached": process_ns("import torch", bare),
            "import_torch": process_ns("import torch", attached),
        },
    )
    yield _ratio("import_torch", ns, "import_torch", "unattached", 1.02)


def _ratio(
    case: str, ns: dict[str, list[float]], side: str, against: str, bound: float | None = None
) -> Result:
    value = median_ratio(ns[side], ns[against])
    return Result("torch", case, value, RATIO, against, bound, len(ns[side]))


# ---- sides -----------------------------------------------------------------------------------


def _side(state: State, step: Step, count: int) -> Callable[[], float]:
    def side() -> float:
        with state():
            _loop_ns(step, max(1, count // 20))
            return _loop_ns(step, count)

    return side


def _loop_ns(step: Step, count: int) -> float:
    """CPU nanoseconds of one step, including the loop, over all threads: this includes the window
    thread, and is less sensitive to other processes than wall time."""
    start = process_time_ns()
    for _ in repeat(None, count):
        step()
    return (process_time_ns() - start) / count


def _fastest_ns(step: Step, count: int) -> float:
    """The fastest of some steps: interference only ever adds time."""
    least = float("inf")
    for _ in repeat(None, count):
        start = process_time_ns()
        step()
        least = min(least, process_time_ns() - start)
    return least


def _attached(directory: str, **settings: float) -> State:
    return partial(attached, bridge, directory, **settings)


def _in_window(directory: str) -> State:
    @contextmanager
    def state() -> Iterator[None]:
        with _attached(directory, window_ms=1.0, period_ms=_NEVER_MS)():
            lib.opscope_recorder_window_begin(1.0)
            try:
                yield
            finally:
                lib.opscope_recorder_window_end()

    return state


@contextmanager
def _empty_pair() -> Iterator[None]:
    bridge.attach()  # finds PyTorch's functions
    bridge.detach()
    lib.opscope_torch_add_empty_pair()
    try:
        yield
    finally:
        lib.opscope_torch_remove_empty_pair()


def _profiled() -> AbstractContextManager[Any]:
    from torch.profiler import ProfilerActivity, profile

    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # otherwise it logs each start to stderr
    # PyTorch 2.4 keeps the events unasked.
    is_asked = "acc_events" in signature(profile).parameters
    keeps: dict[str, Any] = {"acc_events": True} if is_asked else {}
    profiler: AbstractContextManager[Any] = profile(activities=[ProfilerActivity.CPU], **keeps)
    return profiler
