"""How fast the tensor core is, against NumPy and PyTorch on the same data.

A value is the peer's time to ours, of the faster peer where there are two: more is better. Cases
are measured in a fresh process for each number of threads, since OpenBLAS fixes its own when it is
loaded; with two threads a case is named ``<case>_2t``.
"""

from __future__ import annotations

import importlib.util
import json
import operator
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter_ns, sleep
from typing import Any

from opscope.bench import RATIO, Effort, Result, interleaved, median_ratio
from opscope.errors import OpscopeError

_ROUND_NS = 2_000_000
# Longer than a library's threads look for work before they sleep: OpenMP's do so for some
# milliseconds, on the processors that the next side's threads need.
_SETTLE_S = 0.01
_SIZES = {"1e3": 1_000, "1e5": 100_000, "4e6": 4_000_000}
_THREADS = (1, 2)
_LIBRARY_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")

_Call = Callable[[], object]
_Case = tuple[str, _Call, dict[str, _Call]]


def measure(effort: Effort) -> Iterator[Result]:
    """Measure in processes of their own. OpscopeError where the core or PyTorch is missing."""
    for module in ("opscope._tensor", "numpy", "torch"):
        if importlib.util.find_spec(module) is None:
            raise OpscopeError(f"this bench needs {module}, which is not installed")
    rounds = effort.rounds_of(15)
    for threads in _THREADS:
        yield from _in_process(threads, rounds)


def _in_process(threads: int, rounds: int) -> Iterator[Result]:
    command = [sys.executable, "-m", "opscope.bench.tensor", str(threads), str(rounds)]
    environment = os.environ | dict.fromkeys(_LIBRARY_THREADS, str(threads))
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            case, value, against = json.loads(line)
            name = case if threads == 1 else f"{case}_{threads}t"
            yield Result("tensor", name, value, RATIO, against, _bound(case), rounds, True)
    if process.returncode != 0:
        raise OpscopeError(f"the measuring process ended with status {process.returncode}")


def _bound(case: str) -> float:
    """The least that is promised: our speed over that of the fastest peer."""
    if case == "tiny_add":
        return 1.5
    if case.startswith("mm_"):
        return 0.95
    if case in ("conv2d", "cnn_step"):
        return 0.7 if case == "conv2d" else 0.8
    return 0.9 if case in ("strided_add", "sum_dim0", "sum_dim1") else 1.0


def _cases() -> Iterator[_Case]:
    """Name, our call, the peers' calls."""
    import numpy as np
    import torch

    from opscope import tensor as ot

    peers: dict[str, _Call]

    def same(array: Any) -> tuple[Any, Any, Any]:
        return ot.tensor(array), array, torch.from_numpy(array.copy())

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
    images, _, their_images = same(random.normal(size=(32, 32, 32, 32)).astype(np.float32))
    kernels, _, their_kernels = same(random.normal(size=(32, 32, 3, 3)).astype(np.float32))
    peers = {"torch": partial(torch.conv2d, their_images, their_kernels, padding=1)}
    yield "conv2d", partial(ot.conv2d, images, kernels, padding=1), peers
    yield _cnn_step(random)


def _cnn_step(random: Any) -> _Case:
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


def _side(call: _Call) -> Callable[[], float]:
    """Nanoseconds a call takes, over so many that a round is long enough to be timed.

    A round begins once the threads of the side before it sleep, with two calls that wake its own.
    """
    call()
    started = perf_counter_ns()
    call()
    turns = range(max(1, _ROUND_NS // max(1, perf_counter_ns() - started)))

    def side() -> float:
        sleep(_SETTLE_S)
        call()
        call()
        started = perf_counter_ns()
        for _ in turns:
            call()
        return (perf_counter_ns() - started) / len(turns)

    return side


def _main(threads: int, rounds: int) -> None:
    import torch

    from opscope._native import lib

    torch.set_num_threads(threads)
    lib.opscope_pool_set_threads(threads)
    for case, own, peers in _cases():
        sides = {"own": _side(own)} | {name: _side(call) for name, call in peers.items()}
        ns = interleaved(rounds, sides)
        fastest = [min(times) for times in zip(*(ns[name] for name in peers), strict=True)]
        value = median_ratio(fastest, ns["own"])
        print(json.dumps([case, value, " or ".join(peers)]), flush=True)


if __name__ == "__main__":
    _main(int(sys.argv[1]), int(sys.argv[2]))
