"""Results written into the caller's tensors: `out=`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opscope import tensor as ot
from tests.tensor.ranges import ranges

A = ot.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
B = ot.tensor([[2.0, 2.0, 2.0], [3.0, 3.0, 3.0]])


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("add", (A, B)),
        ("mul", (A, B)),
        ("exp", (A,)),
        ("sum", (A, 0)),
        ("mm", (A, B.t())),
        ("matmul", (A, B.t())),
        ("cat", ([A, B], 1)),
        ("cumsum", (A, 1)),
        ("softmax", (A, 1)),
        ("addcmul", (A, A, B)),
        ("eq", (A, B)),
        ("arange", (5,)),
    ],
)
def test_result_is_written_to_out_which_is_returned(name: str, args: tuple[Any, ...]) -> None:
    function = getattr(ot, name)
    expected = function(*args)
    out = ot.full_like(expected, 1)
    address, version = out.data_ptr(), out._version
    with ranges() as seen:
        assert function(*args, out=out) is out
    assert seen[0][0] == f"core::{name}"
    assert out.data_ptr() == address
    assert out._version == version + 1
    assert out.tolist() == expected.tolist()


def test_out_keeps_its_layout_and_dtype() -> None:
    memory = np.zeros((3, 4), np.float64)
    out = ot.from_numpy(memory[:, ::2].T)
    ot.add(A, B, out=out)
    np.testing.assert_array_equal(memory[:, ::2].T, (A + B).numpy())
    assert not memory[:, 1::2].any()


def test_out_may_be_an_argument() -> None:
    a = A.clone()
    assert ot.add(a, B, out=a).tolist() == (A + B).tolist()
    square = ot.tensor([[1.0, 2.0], [3.0, 4.0]])
    expected = ot.mm(square, square).tolist()
    assert ot.mm(square, square, out=square).tolist() == expected
    row = ot.tensor([1.0, 2.0, 3.0, 4.0])
    ot.add(row[:-1], row[1:], out=row[1:])
    assert row.tolist() == [1, 3, 5, 7]


def test_out_without_elements_takes_the_results_sizes() -> None:
    out = ot.empty(0, dtype=ot.float64)
    assert ot.add(A, B, out=out) is out
    assert out.shape == (2, 3)
    assert out.dtype is ot.float64
    assert out.tolist() == (A + B).tolist()


def test_several_results_go_into_a_tuple() -> None:
    values, indices = ot.empty(2), ot.empty(2, dtype=ot.int64)
    assert ot.max(A, 1, out=(values, indices))[0] is values
    assert values.tolist() == [3, 6]
    assert indices.tolist() == [2, 2]
    with pytest.raises(TypeError, match=r"core::sort\(\): out must be a tuple of Tensors"):
        ot.sort(A, out=values)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("out", "error", "text"),
    [
        (
            ot.empty(3, 2),
            RuntimeError,
            r"core::add: the result has sizes \[2, 3\], but out has \[3, 2\]",
        ),
        (ot.empty(2, 3, dtype=ot.int64), TypeError, "core::add.*float32.*int64"),
        (ot.empty(1, 3).expand(2, 3), RuntimeError, r"core::add: .*strides \[0, 1\]"),
        (ot.empty(2, 3).requires_grad_(), RuntimeError, "core::add: out requires grad"),
        (3.0, TypeError, r"core::add\(\): out must be a Tensor"),
    ],
)
def test_out_that_cannot_hold_the_result_is_refused(out: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        ot.add(A, B, out=out)


def test_out_takes_no_part_in_gradients() -> None:
    leaf = A.clone().requires_grad_()
    with pytest.raises(RuntimeError, match="core::add: out= does not support gradients"):
        ot.add(leaf, B, out=ot.empty(2, 3))
    with ot.no_grad():
        assert ot.add(leaf, B, out=ot.empty(2, 3)).tolist() == (A + B).tolist()
    truths = ot.empty(2, 3, dtype=ot.bool)
    assert ot.eq(leaf, B, out=truths).tolist() == ot.eq(A, B).tolist()


def test_views_lists_and_in_place_forms_take_no_out() -> None:
    for call in (
        lambda: ot.transpose(A, 0, 1, out=A),  # type: ignore[call-arg]
        lambda: ot.split(A, 1, out=A),  # type: ignore[call-arg]
        lambda: A.clone().add_(B, out=A),  # type: ignore[call-arg]
    ):
        with pytest.raises(TypeError, match="unexpected keyword argument 'out'"):
            call()
