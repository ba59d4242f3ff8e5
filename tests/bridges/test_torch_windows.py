"""Estimates from windows are unbiased: for a fixed program they equal what recording every range
finds."""

import statistics
import time
from collections import Counter
from pathlib import Path

import pytest
import torch

from opscope.record import recorder
from tests.waiting import until

from .torch_observed import Counts, Step, counts

WINDOW_MS, PERIOD_MS = 2.0, 10.0
TURNS = 250
"""Of a round, in windows; so that as many are within them, a fifth of that with p=1."""
FEWEST_ROUNDS, MOST_ROUNDS = 8, 40
"""More than the fewest where the machine did other things meanwhile: noise gives way to more of
them, an error does not."""


pytestmark = [
    pytest.mark.alone,
    pytest.mark.slow,
    pytest.mark.usefixtures("torch_attached"),
]


def _steady_step() -> Step:
    """Operators of very different length, one of them of a good part of a window, in memory that
    stays. `sum` has others inside, whose recording counts as its own time where every range is
    recorded: up to 2 us, to which its time must be long."""
    square, large, wide = torch.randn(128, 128), torch.randn(288, 288), torch.randn(128, 256)
    product, large_product = torch.empty(128, 128), torch.empty(288, 288)
    other, addends, sums = torch.empty(128, 256), torch.randn(512, 1024), torch.empty(512)

    def step() -> None:
        torch.mm(square, square, out=product)
        torch.addmm(large, large, large, out=large_product)
        torch.tanh(wide, out=other)
        torch.exp(wide, out=other)
        torch.sin(wide, out=other)
        torch.cumsum(wide, 1, out=other)
        torch.softmax(wide, 1, out=other)
        for _ in range(4):
            torch.sum(addends, 1, out=sums)
        torch.log1p(torch.abs(wide, out=other), out=other)

    return step


def _recorded(step: Step, directory: Path, turns: int, *, in_windows: bool) -> Counts:
    window_ms = WINDOW_MS if in_windows else 0.0
    recorder.start(str(directory), window_ms=window_ms, period_ms=PERIOD_MS)
    for _ in range(turns):
        step()
    recorder.stop()
    return counts(directory)


def test_operators_that_outlast_every_window_have_their_own_time(tmp_path: Path) -> None:
    """A convolution calls others, of which the last one works."""
    images, weights = torch.randn(2, 64, 64, 64), torch.randn(64, 64, 3, 3)
    start = time.perf_counter()
    torch.conv2d(images, weights)
    window_ms = 1e3 * (time.perf_counter() - start) / 5
    recorder.start(str(tmp_path), window_ms=window_ms, period_ms=12 * window_ms)
    until(
        lambda: recorder.status().window_count >= 60,
        "60 windows",
        lambda: torch.conv2d(images, weights),
    )
    recorder.stop()
    found = counts(tmp_path)
    of_ops = zip(found.snapshot.keys, found.snapshot.total_s.tolist(), strict=True)
    total_s = {key.op: seconds for key, seconds in of_ops}
    assert total_s["aten::conv2d"] > 0
    assert sum(found.self_s.values()) == pytest.approx(total_s["aten::conv2d"], rel=0.15)
    assert max(found.self_s, key=found.self_s.__getitem__) != "aten::conv2d"


def _is_near_one(ratios: list[float], *, errors: float = 0.0) -> bool:
    """Within 10 % of it, and that many standard errors of the median on top."""
    median = statistics.median(ratios)
    deviation = statistics.median(abs(ratio - median) for ratio in ratios)
    # Of a normal distribution the standard deviation is 1.48 of these, the median's error 1.25
    # times that of the mean.
    error = 1.25 * 1.48 * deviation / len(ratios) ** 0.5
    return bool(abs(median - 1.0) < 0.1 + errors * error)


def test_shares_of_self_time_and_of_calls_are_those_of_all_ranges(tmp_path: Path) -> None:
    step = _steady_step()
    step()
    ratios: dict[str, list[float]] = {}
    self_s: Counter[str] = Counter()
    calls_of_all: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    large: list[str] = []
    for turn in range(MOST_ROUNDS):
        every = _recorded(step, tmp_path / f"every{turn}", TURNS // 5, in_windows=False)
        some = _recorded(step, tmp_path / f"some{turn}", TURNS, in_windows=True)
        calls_of_all.update(every.calls)
        calls.update(some.calls)
        self_s.update({op: round(seconds * 1e9) for op, seconds in every.self_s.items()})
        for op in every.self_s.keys() & some.self_s.keys():
            ratios.setdefault(op, []).append(some.self_share(op) / every.self_share(op))
        large = [op for op, ns in self_s.items() if ns > 0.02 * self_s.total()]
        if turn + 1 >= FEWEST_ROUNDS and all(_is_near_one(ratios[op]) for op in large):
            break
    assert len(large) > 4
    for op in large:
        assert _is_near_one(ratios[op], errors=5), (op, ratios[op])

    # Windows that catch of each turn one or none are the worst that there can be: a number that is
    # off by its root. What an operator is called for again in the same turn is caught with it.
    in_step = {op: count // calls_of_all["aten::mm"] for op, count in calls_of_all.items()}
    turns = calls.total() / sum(in_step.values())
    error = (turns * WINDOW_MS / PERIOD_MS) ** -0.5
    assert set(calls) <= set(in_step)
    for op, count in in_step.items():
        assert calls[op] / count == pytest.approx(turns, rel=5 * error), op
