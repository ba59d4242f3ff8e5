"""Callbacks that ask for values get the arguments and the result themselves."""

from collections.abc import Iterator

import numpy as np
import pytest

import opscope
from opscope._native import lib

A = np.arange(3.0)


class Values:
    def __init__(self) -> None:
        self.inputs: list[tuple[object, ...]] = []
        self.outputs: list[tuple[object, ...]] = []

    def start(self, fn: opscope.RecordFunction) -> None:
        self.inputs.append(tuple(fn.inputs))

    def end(self, fn: opscope.RecordFunction, context: object) -> None:
        self.outputs.append(tuple(fn.outputs))


@pytest.fixture
def values(attached: None) -> Iterator[Values]:
    seen = Values()
    handle = opscope.add_global_callback(
        seen.start, seen.end, needs_inputs=True, needs_outputs=True
    )
    yield seen
    opscope.remove_callback(handle)


def _same(found: tuple[object, ...], expected: tuple[object, ...]) -> bool:
    return len(found) == len(expected) and all(a is b for a, b in zip(found, expected, strict=True))


def test_a_ufunc_shows_its_arguments_then_keywords_and_its_result(values: Values) -> None:
    out = np.empty(3)
    np.add(A, A, out=out)
    assert _same(values.inputs[0], (A, A, out))
    assert _same(values.outputs[0], (out,))


def test_several_results_are_several_outputs(values: Values) -> None:
    result = np.modf(A)
    assert _same(values.outputs[0], result)


def test_a_method_shows_its_array_first_and_a_function_no_module(values: Values) -> None:
    A.dot(A)
    np.dot(A, A)
    assert _same(values.inputs[0], (A, A))
    assert _same(values.inputs[1], (A, A))


def test_a_method_with_old_conventions_shows_the_same(values: Values) -> None:
    A.nonzero()
    A.repeat(2, axis=0)
    assert _same(values.inputs[0], (A,))
    assert values.inputs[1][1:] == (2, 0)


def test_a_ufuncs_method_does_not_show_the_ufunc(values: Values) -> None:
    np.add.reduce(A)
    assert _same(values.inputs[0], (A,))


def test_indexing_shows_array_and_index(values: Values) -> None:
    index = [0, 1]
    A[index]
    assert _same(values.inputs[0], (A, index))


def test_a_call_that_raises_has_no_outputs(values: Values) -> None:
    with pytest.raises(TypeError):
        np.add(A, "x")
    assert values.outputs == [()]


def test_a_call_that_raises_is_a_failed_range(attached: None) -> None:
    failed: list[bool] = []
    handle = opscope.add_global_callback(
        end=lambda fn, _: failed.append(lib.opscope_range_failed(fn._range))
    )
    with pytest.raises(TypeError):
        np.add(A, "x")
    with pytest.raises(IndexError):
        A[[9]]
    np.add(A, A)
    opscope.remove_callback(handle)
    assert failed == [True, True, False]
