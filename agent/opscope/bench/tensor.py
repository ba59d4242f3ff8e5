"""The speed of the tensor core, relative to NumPy and PyTorch on the same data.

A value is the peer's time divided by the core's (more is better): the median over the rounds, in
each of which the two run in sequence. With two peers, the value refers to the one with the smaller
median. (Taking the faster peer of each round would bias the value: the minimum of two noisy numbers
is below either, so an equally fast peer would look faster.) Cases run in a fresh process for each
number of threads, since OpenBLAS fixes its own when it is loaded; a case with two threads is named
`<case>_2t`.

The number of rounds of a case depends on its variation. All cases take turns, with some rounds each
time, so that a slow minute of the machine affects a few rounds of each case, not all rounds of one.
A case ends when the confidence interval of its value is narrow or lies on one side of the bound,
within a maximum of rounds and time. Since this test is repeated, a 95 % interval would be wrong
more often than stated, so the test against the bound uses a much higher confidence. The reported
interval has 95 %.
"""

from __future__ import annotations

import importlib.util
import json
import operator
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from statistics import median
from threading import get_native_id
from time import monotonic, perf_counter_ns, sleep
from typing import Any

from opscope.bench import RATIO, Effort, Result, interleaved, median_interval
from opscope.errors import OpscopeError

_ROUND_NS = 2_000_000
_SETTLE_LIMIT_S = 0.1
_ROUNDS_AT_ONCE = 8  # even: every other round runs the sides in reverse order
_LEAST_ROUNDS = 24
_MOST_ROUNDS = 240
_TIME_LIMIT_S = 70  # of a process; all cases then have about equally many rounds
_NARROW = 0.02  # to each side of the value
_AS_GOOD_AS_CERTAIN = 2000  # wrong once in so many
_SIZES = {"1e3": 1_000, "1e5": 100_000, "4e6": 4_000_000}
_THREADS = (1, 2)
_LIBRARY_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")

_Size = tuple[int, int, int, int]
_CONVOLUTIONS: tuple[tuple[str, _Size, _Size, int, int, int], ...] = (
    # name, images, kernels, stride, padding, groups
    ("conv2d", (32, 32, 32, 32), (32, 32, 3, 3), 1, 1, 1),
    ("conv2d_1x1", (16, 128, 28, 28), (64, 128, 1, 1), 1, 0, 1),
    ("conv2d_strided", (16, 64, 32, 32), (64, 64, 3, 3), 2, 1, 1),
    ("conv2d_depthwise", (16, 96, 28, 28), (96, 1, 3, 3), 1, 1, 96),
    ("conv2d_1x1_strided", (8, 256, 28, 28), (512, 256, 1, 1), 2, 0, 1),
    ("conv2d_depthwise_strided", (16, 96, 28, 28), (96, 1, 3, 3), 2, 1, 96),
    ("conv2d_depthwise_5x5_strided", (8, 72, 56, 56), (72, 1, 5, 5), 2, 2, 72),
)

_Call = Callable[[], object]
_Sides = tuple[str, _Call, dict[str, _Call]]


def measure(effort: Effort) -> Iterator[Result]:
    """Measures in separate processes. OpscopeError if the core or PyTorch is missing."""
    for module in ("opscope._tensor", "numpy", "torch"):
        if importlib.util.find_spec(module) is None:
            raise OpscopeError(f"this bench needs {module}, which is not installed")
    most = effort.rounds_of(_MOST_ROUNDS)
    least = most if effort.rounds else min(most, _LEAST_ROUNDS)
    for threads in _THREADS:
        yield from _in_process(threads, least, most, effort)


def _in_process(threads: int, least: int, most: int, effort: Effort) -> Iterator[Result]:
    numbers = [str(number) for number in (threads, least, most)]
    command = [sys.executable, "-m", "opscope.bench.tensor", *numbers, effort.only or "*"]
    environment = os.environ | dict.fromkeys(_LIBRARY_THREADS, str(threads))
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            case, against, level, ratios = json.loads(line)
            yield Result(
                "tensor",
                _shown(case, threads),
                median(ratios),
                RATIO,
                against,
                _bound(case),
                len(ratios),
                more_is_better=True,
                interval=median_interval(ratios),
                detail={"cpu_level": level},
            )
    if process.returncode != 0:
        raise OpscopeError(f"the measuring process ended with status {process.returncode}")


def _shown(case: str, threads: int) -> str:
    return case if threads == 1 else f"{case}_{threads}t"


def _bound(case: str) -> float:
    """The lower bound: the core's speed relative to the fastest peer's."""
    if case == "tiny_add":
        return 1.5
    if case.startswith("mm_"):
        return 0.95
    if case == "cnn_step":
        return 0.8
    return 0.9 if case.startswith(("conv2d", "strided_add", "sum_dim")) else 1.0


def _cases() -> Iterator[_Sides]:
    """Yields each case: its name, the core's call, the peers' calls."""
    import numpy as np
    import torch

    from opscope import tensor as ot

    peers: dict[str, _Call]

    def same(array: Any) -> tuple[Any, Any, Any]:
        # All share one memory, so that its address and page size make no difference.
        return ot.from_numpy(array), array, torch.from_numpy(array)

    one, _, their_one = same(np.ones(1, np.float32))
    yield "tiny_add", lambda: one + one, {"torch": lambda: their_one + their_one}
    random = np.random.default_rng(0)
    for size, count in _SIZES.items():
        a, n, t = same(random.normal(size=count).astype(np.float32))
        for name, sign in (("add", operator.add), ("mul", operator.mul)):
            peers = {"numpy": partial(sign, n, n), "torch": partial(sign, t, t)}
            yield f"{name}_{size}", partial(sign, a, a), peers
        for name in ("exp", "tanh", "sum"):
            peers = {"numpy": partial(getattr(np, name), n), "torch": getattr(t, name)}
            yield f"{name}_{size}", getattr(a, name), peers
        yield f"softmax_{size}", partial(a.softmax, 0), {"torch": partial(t.softmax, 0)}
    a, n, t = same(random.normal(size=(2048, 2048)).astype(np.float32))
    yield "strided_add", lambda: a.t() + a, {"numpy": lambda: n.T + n, "torch": lambda: t.t() + t}
    for dim in (0, 1):
        peers = {"numpy": partial(n.sum, dim), "torch": partial(t.sum, dim)}
        yield f"sum_dim{dim}", partial(a.sum, dim), peers
    for side in (64, 256, 1024):
        a, n, _ = same(random.normal(size=(side, side)).astype(np.float32))
        peers = {"numpy": partial(operator.matmul, n, n)}
        yield f"mm_{side}", partial(operator.matmul, a, a), peers
    for name, shape, weight, stride, padding, groups in _CONVOLUTIONS:
        yield from _convolution(random, name, shape, weight, stride, padding, groups)
    yield _cnn_step(random)


def _convolution(
    random: Any, name: str, shape: _Size, weight: _Size, stride: int, padding: int, groups: int
) -> Iterator[_Sides]:
    """A convolution, and the gradients of its images and of its kernels."""
    import numpy as np
    import torch

    from opscope import tensor as ot

    def normal(size: Any) -> Any:
        return random.normal(size=tuple(size)).astype(np.float32)

    x, w = normal(shape), normal(weight)
    tx, tw = torch.from_numpy(x), torch.from_numpy(w)
    g = normal(torch.conv2d(tx, tw, None, stride, padding, 1, groups).shape)
    tg = torch.from_numpy(g)
    x, w, g = (ot.from_numpy(array) for array in (x, w, g))
    own = (stride, padding, 1, groups)
    peer = (None, [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], groups)
    gradient = torch.ops.aten.convolution_backward
    one, other = [True, False, False], [False, True, False]
    yield (
        name,
        partial(ot.conv2d, x, w, None, *own),
        {"torch": partial(torch.conv2d, tx, tw, None, stride, padding, 1, groups)},
    )
    yield (
        f"{name}_input",
        partial(ot.conv2d_input_backward, g, w, shape, *own),
        {"torch": partial(gradient, tg, tx, tw, *peer, one)},
    )
    yield (
        f"{name}_weight",
        partial(ot.conv2d_weight_backward, g, x, weight, *own),
        {"torch": partial(gradient, tg, tx, tw, *peer, other)},
    )


def _cnn_step(random: Any) -> _Sides:
    """A step of training a small CNN: forward, loss, backward and Adam, from the same weights."""
    import numpy as np
    import torch

    from opscope import tensor as ot
    from opscope.tensor import nn, optim

    def layers(kinds: Any) -> Any:
        return kinds.Sequential(
            kinds.Conv2d(1, 16, 3, padding=1),
            kinds.ReLU(),
            kinds.MaxPool2d(2),
            kinds.Conv2d(16, 32, 3, padding=1),
            kinds.ReLU(),
            kinds.MaxPool2d(2),
            kinds.Flatten(),
            kinds.Linear(32 * 7 * 7, 10),
        )

    def stepping(model: Any, loss_of: Any, optimizer: Any, images: Any, digits: Any) -> _Call:
        def step() -> None:
            optimizer.zero_grad()
            loss_of(model(images), digits).backward()
            optimizer.step()

        return step

    images = random.normal(size=(64, 1, 28, 28)).astype(np.float32)
    digits = random.integers(0, 10, 64)
    theirs, own = layers(torch.nn), layers(nn)
    own.load_state_dict(theirs.state_dict())
    adam = optim.Adam(own.parameters())
    step = stepping(own, ot.cross_entropy, adam, ot.tensor(images), ot.tensor(digits))
    loss_of = torch.nn.functional.cross_entropy
    adam = torch.optim.Adam(theirs.parameters())
    their_digits = torch.from_numpy(digits)
    peer = stepping(theirs, loss_of, adam, torch.from_numpy(images), their_digits)
    return "cnn_step", step, {"torch": peer}


def _settle() -> None:
    """Wait until the other threads of this process sleep.

    OpenMP threads spin for about 10 ms after a loop, on processors that the next side needs.
    """
    own = str(get_native_id())
    until = monotonic() + _SETTLE_LIMIT_S
    while monotonic() < until:
        others = (task for task in Path("/proc/self/task").iterdir() if task.name != own)
        states = ((task / "stat").read_text().rpartition(") ")[2][:1] for task in others)
        if "R" not in states:
            return
        sleep(0.0005)


def _side(call: _Call) -> Callable[[], float]:
    """Nanoseconds per call, over enough calls for a round that is long enough to be timed.

    A round begins after the previous side's threads sleep, with two calls that wake its own.
    """

    def once() -> int:
        started = perf_counter_ns()
        call()
        return perf_counter_ns() - started

    call()
    turns = range(max(1, _ROUND_NS // max(1, min(once() for _ in range(3)))))

    def side() -> float:
        _settle()
        call()
        call()
        started = perf_counter_ns()
        for _ in turns:
            call()
        return (perf_counter_ns() - started) / len(turns)

    return side


@dataclass
class _Case:
    """A case, and the times of each of its sides so far, in nanoseconds."""

    name: str
    own: Callable[[], float]
    peers: dict[str, Callable[[], float]]
    own_ns: list[float] = field(default_factory=list)
    peers_ns: dict[str, list[float]] = field(default_factory=dict)

    def measure(self, rounds: int) -> None:
        """Some rounds more."""
        taken = interleaved(rounds, {"own": self.own} | self.peers)
        self.own_ns += taken.pop("own")
        for name, ns in taken.items():
            self.peers_ns.setdefault(name, []).extend(ns)

    def ratios(self) -> tuple[str, list[float]]:
        """The faster peer, and its time relative to the core's in each round."""
        name, ns = min(self.peers_ns.items(), key=lambda peer: median(peer[1]))
        return name, [theirs / ours for theirs, ours in zip(ns, self.own_ns, strict=True)]

    def is_clear(self) -> bool:
        """Whether more rounds would not change the verdict."""
        _, ratios = self.ratios()
        low, high = median_interval(ratios)
        if high - low <= 2 * _NARROW * median(ratios):
            return True
        low, high = median_interval(ratios, _AS_GOOD_AS_CERTAIN)
        return low > _bound(self.name) or high < _bound(self.name)


def _main(threads: int, least: int, most: int, only: str) -> None:
    import torch

    from opscope import _tensor
    from opscope._native import lib

    level = _tensor.cpu_level()
    torch.set_num_threads(threads)
    lib.opscope_pool_set_threads(threads)
    cases = [
        _Case(name, _side(own), {peer: _side(call) for peer, call in peers.items()})
        for name, own, peers in _cases()
        if fnmatchcase(_shown(name, threads), only)
    ]
    until = monotonic() + _TIME_LIMIT_S
    open_cases, rounds = cases, 0
    while open_cases and rounds < most and (rounds < least or monotonic() < until):
        some = min(_ROUNDS_AT_ONCE, most - rounds)
        for case in open_cases:
            case.measure(some)
        rounds += some
        if rounds >= least:
            open_cases = [case for case in open_cases if not case.is_clear()]
    for case in cases:
        against, ratios = case.ratios()
        print(json.dumps([case.name, f"{against}, {level}", level, ratios]), flush=True)


if __name__ == "__main__":
    threads, least, most = (int(number) for number in sys.argv[1:4])
    _main(threads, least, most, sys.argv[4])
