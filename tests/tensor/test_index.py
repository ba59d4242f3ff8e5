"""Indexing reads and writes the elements NumPy would."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from opscope import tensor as ot
from tests.tensor.ranges import ranges

SOURCE = np.arange(2.0 * 3 * 4 * 5).reshape(2, 3, 4, 5)


@given(hnp.basic_indices(SOURCE.shape, max_dims=8, allow_newaxis=True, allow_ellipsis=True))
def test_basic_index_is_the_view_numpy_takes(key: Any) -> None:
    view = ot.from_numpy(SOURCE)[key]
    expected = SOURCE[key]
    assert view.shape == np.shape(expected)
    np.testing.assert_array_equal(view.numpy(), expected)


@given(
    hnp.basic_indices(SOURCE.shape, max_dims=8, allow_newaxis=True, allow_ellipsis=True),
    st.sampled_from([7, 2.5, True]),
)
def test_assignment_writes_the_elements_numpy_writes(key: Any, value: Any) -> None:
    own, their = SOURCE.copy(), SOURCE.copy()
    ot.from_numpy(own)[key] = value
    their[key] = value
    np.testing.assert_array_equal(own, their)


def test_assignment_broadcasts_tensors_lists_and_arrays() -> None:
    tensor = ot.tensor(SOURCE)
    tensor[0] = ot.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
    tensor[1, 0, 0] = [1, 2, 3, 4, 5]
    tensor[1, 1, :, 0] = np.arange(4.0)
    assert tensor[0, 2, 3].tolist() == [1, 2, 3, 4, 5]
    assert tensor[1, 0, 0].tolist() == [1, 2, 3, 4, 5]
    assert tensor[1, 1, :, 0].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "key",
    [
        np.array([1, 0, 1]),
        np.array(1),
        np.array([[0, 1], [1, 1]]),
        np.array([-1, 0]),
        (slice(None), np.array([2, 0])),
        (..., np.array([4, 4, 0])),
        (1, slice(1, None), np.array([3, 0])),
        np.array([True, False]),
        SOURCE > 50,
        (0, np.array([True, False, True])),
        [0, 1, 1],
    ],
)
def test_tensor_of_indices_or_mask_takes_what_pytorch_takes(key: Any) -> None:
    def converted(make: Any) -> Any:
        parts = [
            make(part) if isinstance(part, np.ndarray) else part
            for part in (key if isinstance(key, tuple) else (key,))
        ]
        return tuple(parts) if isinstance(key, tuple) else parts[0]

    taken = ot.from_numpy(SOURCE)[converted(ot.tensor)]
    expected = torch.from_numpy(SOURCE)[converted(torch.tensor)]
    np.testing.assert_array_equal(taken.numpy(), expected.numpy(), strict=True)


def test_mask_assigns_a_number() -> None:
    tensor = ot.tensor([1.0, -2.0, 3.0])
    tensor[tensor < 0] = 0
    assert tensor.tolist() == [1, 0, 3]


@pytest.mark.parametrize(
    ("key", "error", "text"),
    [
        (2, IndexError, "2"),
        (-3, IndexError, "-3"),
        ((0, 0, 0, 0, 0), IndexError, r"too many indices \(5\)"),
        ((..., ...), IndexError, "only one ellipsis"),
        ("a", TypeError, "not str"),
        (1.5, TypeError, "not float"),
        (ot.tensor([0.5]), IndexError, "float32"),
        (ot.tensor([True]), IndexError, "size 1"),
        (slice(None, None, 0), ValueError, "zero"),
    ],
)
def test_wrong_index_is_refused_with_the_reason(
    key: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        ot.from_numpy(SOURCE)[key]


def test_each_part_of_an_index_is_one_range() -> None:
    tensor = ot.from_numpy(SOURCE)
    with ranges() as seen:
        _ = tensor[1, ..., None, ::2]
    assert [name for name, _ in seen] == ["core::select", "core::unsqueeze", "core::slice"]


def test_tensors_are_sequences_of_their_first_dimension() -> None:
    tensor = ot.from_numpy(SOURCE)
    assert len(tensor) == 2
    assert [part.shape for part in tensor] == [(3, 4, 5)] * 2
    first, second = tensor
    assert second.data_ptr() > first.data_ptr()
    with pytest.raises(TypeError, match="no len"):
        len(ot.tensor(1))
    with pytest.raises(TypeError, match="no len"):
        iter(ot.tensor(1))


def test_index_of_a_leaf_carries_gradient() -> None:
    leaf = ot.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    leaf[1, ::2].sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [[0, 0], [1, 0]]


def test_a_tensor_reads_backwards_along_its_first_dimension() -> None:
    backwards: Any = reversed  # type checkers mistake it for a class of iterators
    assert [part.item() for part in backwards(ot.tensor([1, 2, 3]))] == [3, 2, 1]
    assert backwards(ot.tensor([[1], [2]])).tolist() == [[2], [1]]
    assert backwards(ot.tensor(4)).item() == 4
