"""What observing PyTorch costs small models, whose time goes into calling operators.

``attached`` is attached with the defaults: all ranges within windows of 2 ms every 250 ms. Beside
it stand the same work with a probability for each operator and under torch.profiler. All sides run
in this process; attaching and detaching happen between the timed loops. Importing is timed in fresh
processes.

What windows cost is less than what the machine's speed changes by from second to second. So within
a round the sides take turns, in slices; a round is one ratio of the two sums, and the median over
the rounds comes with its confidence interval. A window that is open at a slice's end runs to its
own end within it.

``..._by_window`` says the same with less noise: what a window of 2 ms adds, its opening, its
closing and the millisecond after it included, measured many times against the same work next to it
without one, over the 250 ms from one window to the next. Outside of windows nothing of the bridge
is called.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from itertools import repeat
from statistics import median
from time import process_time_ns
from typing import Any

import torch
from torch import nn

from opscope._native import lib
from opscope.attachment.launch import environment
from opscope.bench import (
    RATIO,
    Effort,
    Result,
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
_SIDE_NS = 600_000_000
"""How long one side of a round runs: some windows long."""
_SLICES = 20
"""Of a side of a round, where the sides take turns within it."""
_AFTERMATH_NS = 1_000_000
"""How long after a window its cost is looked for."""
_NEVER_MS = 1e8
"""A period between windows that no bench lives to see the end of."""

Step = Callable[[], object]
State = Callable[[], AbstractContextManager[Any]]


def measure(effort: Effort) -> Iterator[Result]:
    if recorder.status().running:
        raise OpscopeError("this process is observed already; run it outside of opscope")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # else a small model's time is that of waking threads
    try:
        with segment_directory() as directory:
            for case, step in (
                ("mlp_infer", _mlp_infer()),
                ("train_step", _train_step()),
                ("transformer_step", _transformer_step()),
            ):
                yield from _steps(case, step, directory, effort)
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


def _steps(case: str, step: Step, directory: str, effort: Effort) -> Iterator[Result]:
    rounds = effort.rounds_of(61)
    count = max(1, effort.count_of(_SIDE_NS) // round(_loop_ns(step, 20)))
    config = load({}, os.devnull)
    windows = {"window_ms": config.window_ms, "period_ms": config.period_ms}
    attached = _attached(directory, **windows)
    slice_count = max(1, count // _SLICES)
    ratios = [_sliced_ratio(attached, step, slice_count) for _ in range(rounds)]
    yield Result(
        "torch",
        case,
        median(ratios),
        RATIO,
        "unattached",
        _ATTACHED_BOUND,
        rounds,
        interval=median_interval(ratios),
    )
    yield _by_window(case, step, directory, effort)
    rounds = effort.rounds_of(11)
    few = max(1, count // 10)
    ns = interleaved(
        rounds,
        {
            "unattached": _side(nullcontext, step, few),
            "p01": _side(_attached(directory, sampling=0.01), step, few),
            "p1": _side(_attached(directory, sampling=1.0), step, few),
            "torch_profiler": _side(_profiled, step, max(1, few // 10)),
        },
    )
    for side in ("p01", "p1", "torch_profiler"):
        yield _ratio(f"{case}_{side}", ns, side, "unattached")


def _by_window(case: str, step: Step, directory: str, effort: Effort) -> Result:
    pairs = effort.rounds_of(1201)
    config = load({}, os.devnull)
    step_ns = _loop_ns(step, 20)
    within = max(1, round(config.window_ms * 1e6 / step_ns))
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

    with _attached(directory, window_ms=config.window_ms, period_ms=_NEVER_MS)():
        ns = interleaved(pairs, {"window": window, "without": without})
    # Steps are whole, windows are not. What a window sees is taken for the work that its length is
    # enough for without it, which is more than there is.
    work_ns = median(ns["without"]) * within / (within + after)
    scale = config.window_ms / work_ns / config.period_ms
    ratios = [1 + (on - off) * scale for on, off in zip(ns["window"], ns["without"], strict=True)]
    return Result(
        "torch",
        f"{case}_by_window",
        median(ratios),
        RATIO,
        "unattached",
        _ATTACHED_BOUND,
        pairs,
        interval=median_interval(ratios),
    )


def _window_range(directory: str, effort: Effort) -> Iterator[Result]:
    """The cheapest operator there is, in place on one number, and all windows open."""
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


def _sliced_ratio(state: State, step: Step, count: int) -> float:
    """One round: the time of a step with ``state`` to that without, in turns of ``count`` steps."""
    totals = {True: [0.0, 0], False: [0.0, 0]}
    for turn in range(_SLICES):
        for is_on in (turn % 2 == 0, turn % 2 != 0):
            if not is_on:
                with state():
                    pass  # what starting and stopping does to caches is then done on both sides
            with state() if is_on else nullcontext():
                _loop_ns(step, max(1, count // 5))
                ns, steps = _loop_ns(step, count) * count, count
                while is_on and recorder.status().in_window:
                    ns, steps = ns + _loop_ns(step, 1), steps + 1
            totals[is_on][0] += ns
            totals[is_on][1] += steps
    (on_ns, on_steps), (off_ns, off_steps) = totals[True], totals[False]
    return (on_ns / on_steps) / (off_ns / off_steps)


# ---- sides -----------------------------------------------------------------------------------


def _side(state: State, step: Step, count: int) -> Callable[[], float]:
    def side() -> float:
        with state():
            _loop_ns(step, max(1, count // 20))
            return _loop_ns(step, count)

    return side


def _loop_ns(step: Step, count: int) -> float:
    """Nanoseconds of processors' time for one step, the loop included: that of the thread which
    drives windows too, and what other processes do meanwhile counts less than by the wall's."""
    start = process_time_ns()
    for _ in repeat(None, count):
        step()
    return (process_time_ns() - start) / count


def _attached(
    directory: str, *, sampling: float = 1.0, window_ms: float = 0.0, period_ms: float = 0.0
) -> State:
    @contextmanager
    def state() -> Iterator[None]:
        recorder.start(directory, sampling=sampling, window_ms=window_ms, period_ms=period_ms)
        try:
            bridge.attach()
            try:
                yield
            finally:
                bridge.detach()
        finally:
            recorder.stop(discard=True)

    return state


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

    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # else it tells of each start on stderr
    profiler: AbstractContextManager[Any] = profile(
        activities=[ProfilerActivity.CPU], acc_events=True
    )
    return profiler
