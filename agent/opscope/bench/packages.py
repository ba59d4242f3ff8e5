"""The cost of observing one small call of each package with a bridge, against no bridge.

For marks (`nvtx`, `itt`), it is the cost of following a mark, against a client whose marks nobody
follows: what a client does only because there is a tool is in both.

`NAME_recorded`: the recorder at p = 1; `NAME_between`: attached with the defaults, between windows.
The bound holds for calls above 500 ns: where the bare call is shorter, the case has none. Packages
that are not installed are left out, and named on standard error.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import repeat
from statistics import median
from time import perf_counter_ns
from typing import Any, NamedTuple

import numpy as np

from opscope import bridges
from opscope.bench import (
    RATIO,
    Effort,
    Result,
    attached,
    interleaved,
    median_ratio,
    segment_directory,
)
from opscope.bridges import marks
from opscope.errors import OpscopeError
from opscope.record import recorder

_WARM_UP = 200
_BETWEEN = {"window_ms": 2.0, "period_ms": 1e6}
"""Default windows, but none during the measurement."""
_BOUNDED_NS = 500


class _Call(NamedTuple):
    package: str
    modules: tuple[str, ...]
    make: Callable[[Any], Callable[[], object]]
    """From the package to a call."""
    bridge: str = ""
    """If it is not that of the package; it then names the cases."""
    variable: str = ""
    """For marks: names the library of the bridge to the package, before its import."""


def _random(numpy: Any) -> Callable[[], object]:
    generator = numpy.random.default_rng(0)
    return lambda: generator.normal(size=10)


def _product(numpy: Any) -> Callable[[], object]:
    x, out = numpy.ones((32, 32)), numpy.empty((32, 32))
    return lambda: numpy.matmul(x, x, out)


def _pandas(pandas: Any) -> Callable[[], object]:
    values = np.arange(10)
    return lambda: pandas._libs.algos.rank_1d(values)


def _scipy(scipy: Any) -> Callable[[], object]:
    a, b = np.ones((2, 3)), np.ones((2, 3))
    return lambda: scipy.spatial.distance.cdist(a, b)


def _sklearn(sklearn: Any) -> Callable[[], object]:
    scaler, x = sklearn.preprocessing.FunctionTransformer(), np.ones((2, 2))
    return lambda: scaler.transform(x)


def _cv2(cv2: Any) -> Callable[[], object]:
    image = np.zeros((16, 16), np.uint8)
    return lambda: cv2.blur(image, (3, 3))


def _lightgbm(lightgbm: Any) -> Callable[[], object]:
    library = lightgbm.basic._LIB
    return lambda: library.LGBM_GetLastError()


def _numba(numba: Any) -> Callable[[], object]:
    one = numba.njit(_sum)
    ten = np.ones(10)
    return lambda: one(ten)


def _sum(values: Any) -> Any:
    return values.sum()


def _jax(jax: Any) -> Callable[[], object]:
    one, ten = jax.jit(_sum), jax.numpy.ones(10)
    return lambda: one(ten)


def _bottleneck(bottleneck: Any) -> Callable[[], object]:
    many = np.ones(1000)
    return lambda: bottleneck.nanmean(many)


def _nvtx(nvtx: Any) -> Callable[[], object]:
    domain = nvtx.get_domain("bench")
    attributes = domain.get_event_attributes(message="one")

    def call() -> None:
        domain.push_range(attributes)
        domain.pop_range()

    return call


def _itt(torch: Any) -> Callable[[], object]:
    itt = torch.profiler.itt

    def call() -> None:
        itt.range_push("one")
        itt.range_pop()

    return call


_CALLS = (
    _Call("numpy", (), _random),
    _Call("numpy", (), _product, "blas"),
    _Call("pandas", (), _pandas),
    _Call("scipy", ("scipy.spatial.distance",), _scipy),
    _Call("sklearn", ("sklearn.preprocessing",), _sklearn),
    _Call("cv2", (), _cv2),
    _Call("lightgbm", (), _lightgbm),
    _Call("numba", (), _numba),
    _Call("jax", (), _jax),
    _Call("bottleneck", (), _bottleneck),
    _Call("nvtx", (), _nvtx, "nvtx", "NVTX_INJECTION64_PATH"),
    _Call("torch", ("torch.profiler.itt",), _itt, "itt", "INTEL_LIBITTNOTIFY64"),
)


def measure(effort: Effort) -> Iterator[Result]:
    if recorder.status().running:
        raise OpscopeError("this process is observed already; run it outside of opscope")
    rounds, count = effort.rounds_of(41), effort.count_of(5_000)
    for call in _CALLS:
        name = call.bridge or call.package
        cases = f"{name}_recorded", f"{name}_between"
        if not any(effort.wants(case) for case in cases):
            continue
        if find_spec(call.package) is None:
            print(f"packages: {call.package} missing", file=sys.stderr)
            continue
        bridge = bridges.load(name)
        if call.variable:
            os.environ[call.variable] = marks.library()
            bridge.attach()
        for module in call.modules:
            import_module(module)
        run = call.make(import_module(call.package))
        if call.variable:
            run()
            bridge.detach()
            if bridge.status().pointers == 0:
                print(f"packages: {name} has begun without the bridge", file=sys.stderr)
                continue
        with segment_directory() as directory:
            ns = interleaved(
                rounds,
                {
                    "bare": _side(nullcontext, run, count),
                    "recorded": _side(
                        partial(attached, bridge, directory, sampling=1.0), run, count
                    ),
                    "between": _side(partial(attached, bridge, directory, **_BETWEEN), run, count),
                },
            )
        is_bounded = median(ns["bare"]) >= _BOUNDED_NS
        for case, side, bound in zip(cases, ("recorded", "between"), (1.10, 1.01), strict=True):
            value = median_ratio(ns[side], ns["bare"])
            against = f"{median(ns['bare']):.0f} ns"
            limit = bound if is_bounded else None
            yield Result("packages", case, value, RATIO, against, limit, rounds)


def _side(
    state: Callable[[], AbstractContextManager[None]], run: Callable[[], object], count: int
) -> Callable[[], float]:
    def side() -> float:
        with state():
            _call_ns(run, _WARM_UP)
            return _call_ns(run, count)

    return side


def _call_ns(run: Callable[[], object], count: int) -> float:
    start = perf_counter_ns()
    for _ in repeat(None, count):
        run()
    return (perf_counter_ns() - start) / count
