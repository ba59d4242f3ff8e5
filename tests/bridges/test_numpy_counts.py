"""One call into NumPy is one range, for every way of calling."""

import importlib
import operator
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import opscope
from opscope.bridges import numpy as bridge

from .conftest import Ranges

imul: Any = operator.imul
A: Any = np.arange(10.0)
SQUARE = np.arange(9.0).reshape(3, 3) + 4 * np.eye(3)
BIG = np.arange(400_000.0).reshape(200, 2000)


def _all_ufuncs() -> list[np.ufunc]:
    return list({id(f): f for f in vars(np).values() if isinstance(f, np.ufunc)}.values())


def _arguments(ufunc: np.ufunc) -> list[np.ndarray]:
    times = {"m": "m8[s]", "M": "M8[s]"}
    codes = next((t for t in ufunc.types if not times.keys() & set(t)), ufunc.types[0])
    return [np.ones(4, dtype="i8").astype(times.get(c, c)) for c in codes.split("->")[0]]


def test_a_call_of_each_ufunc_of_numpy_is_one_range(ranges: Ranges) -> None:
    plain = [ufunc for ufunc in _all_ufuncs() if ufunc.signature is None and ufunc.types]
    calls = [(ufunc, _arguments(ufunc)) for ufunc in plain]
    ranges.take()
    for ufunc, arguments in calls:
        with np.errstate(all="ignore"):
            for _ in range(3):
                ufunc(*arguments)
        assert ranges.take() == [f"numpy::{ufunc.__name__}"] * 3
    assert len(calls) > 80


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: A + A, "numpy::add"),
        (lambda: 1.0 - A, "numpy::subtract"),
        (lambda: imul(A.copy(), 2), "numpy::multiply"),
        (lambda: -A, "numpy::negative"),
        (lambda: A < 3, "numpy::less"),
        (lambda: SQUARE @ SQUARE, "numpy::matmul"),
        (lambda: divmod(A, 3.0), "numpy::divmod"),
        (lambda: np.add(A, A, out=np.empty(10)), "numpy::add"),
        (lambda: np.add(A, A, where=A > 3, out=np.zeros(10)), "numpy::add"),
        (lambda: np.add(A, A, dtype="f4", casting="same_kind"), "numpy::add"),
        (lambda: np.add(*(BIG[:, ::3], BIG[:, ::3])), "numpy::add"),
        (lambda: np.add(BIG.T, BIG[:, :1].T), "numpy::add"),
        (lambda: np.add(BIG, 1, dtype=np.complex128), "numpy::add"),
        (lambda: np.add.reduce(A), "numpy::add.reduce"),
        (lambda: A.sum(), "numpy::add.reduce"),
        (lambda: BIG.sum(axis=0), "numpy::add.reduce"),
        (lambda: np.max(BIG), "numpy::maximum.reduce"),
        (lambda: np.add.accumulate(A), "numpy::add.accumulate"),
        (lambda: A.cumsum(), "numpy::add.accumulate"),
        (lambda: np.add.reduceat(A, [0, 5]), "numpy::add.reduceat"),
        (lambda: np.multiply.outer(A, A), "numpy::multiply.outer"),
        (lambda: np.add.at(A.copy(), [1, 1], 1), "numpy::add.at"),
        (lambda: np.linalg.inv(SQUARE), "numpy::linalg.inv"),
        (lambda: np.linalg.solve(SQUARE, A[:3]), "numpy::linalg.solve1"),
        (lambda: np.dot(A, A), "numpy::dot"),
        (lambda: A.dot(A), "numpy::ndarray.dot"),
        (lambda: np.inner(A, A), "numpy::inner"),
        (lambda: np.vdot(A, A), "numpy::vdot"),
        (lambda: np.einsum("ij,jk", SQUARE, SQUARE), "numpy::c_einsum"),
        (lambda: np.concatenate([A, A]), "numpy::concatenate"),
        (lambda: np.vstack([A, A]), "numpy::concatenate"),
        (lambda: np.where(A > 3, A, 0), "numpy::where"),
        (lambda: np.bincount([1, 2, 2]), "numpy::bincount"),
        (lambda: np.interp(2.5, A, A), "numpy::interp"),
        (lambda: np.copyto(np.empty(10), A), "numpy::copyto"),
        (lambda: np.sort(A), "numpy::ndarray.sort"),
        (lambda: np.argsort(A), "numpy::ndarray.argsort"),
        (lambda: np.take(A, [1]), "numpy::ndarray.take"),
        (lambda: np.repeat(A, 2), "numpy::ndarray.repeat"),
        (lambda: np.nonzero(A), "numpy::ndarray.nonzero"),
        (lambda: np.searchsorted(A, 3), "numpy::ndarray.searchsorted"),
        (lambda: A.astype("f4"), "numpy::ndarray.astype"),
        (lambda: A.argmax(), "numpy::ndarray.argmax"),
        (lambda: A.tolist(), "numpy::ndarray.tolist"),
        (lambda: A.copy().fill(2), "numpy::ndarray.fill"),
        (lambda: A[[1, 2]], "numpy::getitem_advanced"),
        (lambda: A[A > 3], "numpy::getitem_advanced"),
        (lambda: BIG[:, [1, 2]], "numpy::getitem_advanced"),
        (lambda: operator.setitem(A.copy(), A > 100, 0), "numpy::setitem_advanced"),
    ],
)
def test_each_way_to_call_is_one_range(
    ranges: Ranges, call: Callable[[], object], name: str
) -> None:
    ranges.take()
    call()
    assert ranges.count(name) == 1


def test_basic_indexing_and_views_are_no_ranges(ranges: Ranges) -> None:
    array = BIG.copy()
    ranges.take()
    array[3]
    array[3, 4]
    array[1:3, ..., None]
    array[True]
    array[0, 0] = 5
    array.T.reshape(-1)
    assert ranges.take() == []


def test_calls_from_a_hot_loop_are_all_counted(ranges: Ranges) -> None:
    # CPython 3.11 and later replace the bytecode of calls that repeat.
    array = A.copy()
    ranges.take()
    for _ in range(100):
        np.add(array, array)
        _ = array + array
        array[A > 3]
        array.dot(array)
        array.nonzero()
        array.repeat(2)
        np.dot(array, array)
        np.where(array)
        np.add.reduce(array)
    assert Counter(ranges.take()) == {
        "numpy::add": 200,
        "numpy::greater": 100,
        "numpy::getitem_advanced": 100,
        "numpy::ndarray.dot": 100,
        "numpy::ndarray.nonzero": 100,
        "numpy::ndarray.repeat": 100,
        "numpy::dot": 100,
        "numpy::where": 100,
        "numpy::add.reduce": 100,
    }


def test_calls_of_all_threads_are_counted(ranges: Ranges) -> None:
    def work() -> None:
        for _ in range(200):
            np.add(A, A)
            A.sum()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ranges.count("numpy::add") == 800
    assert ranges.count("numpy::add.reduce") == 800


def test_a_ufunc_called_by_a_ufuncs_loop_is_its_own_range_inside(ranges: Ranges) -> None:
    class Number:
        def __add__(self, other: object) -> "Number":
            np.multiply(2, 3)
            return self

    objects = np.array([Number(), Number()], dtype=object)
    ranges.take()
    np.add(objects, objects)
    assert ranges.take() == ["numpy::add", "numpy::multiply", "numpy::multiply"]


def test_an_override_of_a_ufunc_is_one_range_of_that_ufunc(ranges: Ranges) -> None:
    class Own:
        def __array_ufunc__(self, ufunc: np.ufunc, *args: object, **kwargs: object) -> str:
            return ufunc.__name__

    add: Any = np.add
    assert add(A, Own()) == "add"
    assert ranges.take() == ["numpy::add"]


def test_a_subclass_of_ndarray_is_seen_as_ndarray_is(ranges: Ranges) -> None:
    class Own(np.ndarray):
        pass

    own = A.view(Own)
    assert type(own + 1) is Own
    assert ranges.take() == ["numpy::add"]


def test_methods_of_other_packages_ufuncs_share_one_name(ranges: Ranges) -> None:
    ufunc = np.frompyfunc(lambda a, b: a + b, 2, 1)
    ufunc(A, A)
    assert ufunc.reduce(A) == 45
    assert ranges.take() == ["numpy::ufunc.reduce"]


def test_operators_used_by_a_callback_are_no_ranges(ranges: Ranges) -> None:
    handle = opscope.add_global_callback(lambda fn: np.multiply(A, A) and None)
    try:
        np.add(A, A)
    finally:
        opscope.remove_callback(handle)
    assert ranges.take() == ["numpy::add"]


def test_names_are_listed_once() -> None:
    bridge.attach()
    try:
        names = bridge.seen()
    finally:
        bridge.detach()
    assert len(names) == len(set(names)) > 150
    assert {"numpy::add", "numpy::dot", "numpy::linalg.inv", "numpy::ufunc.reduce"} <= set(names)


def test_a_late_module_is_taken_in_by_attaching_again(ranges: Ranges) -> None:
    importlib.import_module("numpy.fft")
    bridge.attach()
    np.fft.fft(np.ones(8))
    if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
        assert any(name.startswith("numpy::fft.") for name in ranges.names)
