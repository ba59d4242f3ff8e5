"""Results, errors and warnings of NumPy are the same attached, with callbacks at every range."""

import logging
import operator
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import opscope
from opscope.bridges import numpy as bridge

# Wrong calls are the point here; they are not for the type checker.
A: Any = np.arange(4.0)
add: Any = np.add
setitem: Any = operator.setitem
raising = np.errstate(all="raise")


class Stubborn:
    def __array_ufunc__(self, *args: object, **kwargs: object) -> object:
        raise LookupError("not today")


CALLS: dict[str, Callable[[], object]] = {
    "divide by zero": lambda: np.divide(1.0, np.zeros(2)),
    "overflow": lambda: np.exp(np.array([1000.0])),
    "invalid": lambda: np.sqrt(np.array([-1.0])),
    "errstate": lambda: raising(np.log)(np.zeros(1)),
    "shapes": lambda: add(A, np.ones(3)),
    "types": lambda: add(A, "x"),
    "casting": lambda: add(A, A, out=np.zeros(4, dtype=int)),
    "no arguments": lambda: add(),
    "unknown keyword": lambda: add(A, A, wrong=1),
    "where": lambda: add(A, A, where=A > 1, out=np.zeros(4)),
    "objects": lambda: add(np.array([1, "a"], dtype=object), np.array([2, "b"], dtype=object)),
    "objects that raise": lambda: add(np.array([1, None], dtype=object), 1),
    "override that raises": lambda: add(A, Stubborn()),
    "empty reduction": lambda: np.maximum.reduce(np.zeros(0)),
    "reduction axis": lambda: A.sum(axis=3),
    "at": lambda: np.add.at(A, [9], 1),
    "singular": lambda: np.linalg.inv(np.zeros((2, 2))),
    "not square": lambda: np.linalg.solve(np.ones((2, 3)), A[:2]),
    "svd": lambda: np.linalg.svd(np.full((2, 2), np.nan)),
    "dot shapes": lambda: np.dot(A, np.ones(3)),
    "einsum": lambda: np.einsum("ij", A),
    "concatenate": lambda: np.concatenate([A, np.ones((2, 2))]),
    "index": lambda: A[[9]],
    "index type": lambda: A[[1.5]],
    "mask": lambda: A[np.ones(3, dtype=bool)],
    "assign": lambda: setitem(A, [0, 1], [1, 2, 3]),
    "sort": lambda: A.sort(kind="no such"),
    "copy": lambda: np.copyto(A, np.ones(3)),
    "astype": lambda: np.array(["x"]).astype(float),
    "mean of nothing": lambda: np.zeros(0).mean(),
}


def _outcome(call: Callable[[], object]) -> tuple[object, ...]:
    with warnings.catch_warnings(record=True) as caught, np.errstate():
        warnings.simplefilter("always")
        try:
            result = call()
            value: object = repr(result)
        except Exception as error:
            frames = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
            context = repr(error.__context__)
            value = (type(error), str(error), error.__cause__, context, frames)
    return (value, [(w.category, str(w.message), w.filename, w.lineno) for w in caught])


@contextmanager
def _observed(
    start: Callable[[opscope.RecordFunction], object],
    end: Callable[[opscope.RecordFunction, object], object],
) -> Iterator[None]:
    bridge.attach()
    handle = opscope.add_global_callback(start, end, needs_inputs=True, needs_outputs=True)
    try:
        yield
    finally:
        opscope.remove_callback(handle)
        bridge.detach()


@pytest.mark.parametrize("name", CALLS)
def test_outcomes_are_those_of_bare_numpy(name: str) -> None:
    bare = _outcome(CALLS[name])
    seen: list[str] = []
    with _observed(lambda fn: seen.append(fn.name), lambda fn, context: seen.append(fn.name)):
        observed = _outcome(CALLS[name])
    assert observed == bare
    assert len(seen) >= 2


@pytest.mark.parametrize("name", CALLS)
def test_a_callback_that_raises_changes_no_outcome(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*args: object) -> None:
        raise RuntimeError("a callback's own trouble")

    bare = _outcome(CALLS[name])
    before = opscope.callback_errors()
    with caplog.at_level(logging.CRITICAL, "opscope"), _observed(fail, fail):
        observed = _outcome(CALLS[name])
    assert observed == bare
    assert opscope.callback_errors() >= before + 2


def test_a_callback_sees_no_exception_in_flight() -> None:
    import sys

    inside: list[object] = []
    with (
        _observed(lambda fn: None, lambda fn, context: inside.append(sys.exc_info()[1])),
        pytest.raises(TypeError),
    ):
        add(A, "x")
    assert inside == [None]


def test_results_keep_their_reference_counts() -> None:
    import sys

    with _observed(lambda fn: None, lambda fn, context: None):
        a, b = np.arange(5.0), np.arange(5.0)
        result = add(a, b)
        counts = [sys.getrefcount(x) for x in (a, b, result)]
        for _ in range(100):
            add(a, b)
            a.dot(b)
            a[[1, 2]]
            np.dot(a, b)
            with pytest.raises(ValueError, match="shape"):
                add(a, A)
        assert [sys.getrefcount(x) for x in (a, b, result)] == counts
