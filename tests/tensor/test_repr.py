"""A tensor prints like PyTorch's, except for the dtype's prefix."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from opscope import tensor as ot
from tests.tensor.ranges import ranges


def theirs(tensor: Any) -> str:
    return repr(tensor).replace("dtype=torch.", "dtype=")


def joined(text: str) -> str:
    """Without the line break before a suffix, which PyTorch's longer dtype needs earlier."""
    return re.sub(r",\n +(?=dtype|size)", ", ", text)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(3),
        np.float32(2.5),
        np.arange(12.0, dtype=np.float32).reshape(3, 4) / 7,
        np.arange(24).reshape(2, 3, 4),
        np.array([True, False]),
        np.array([1e-7, 1.0]),
        np.array([1e10, 1.0], np.float32),
        np.array([np.nan, np.inf, -np.inf, 1.0, 2.0], np.float32),
        np.array([np.nan], np.float32),
        np.zeros((0,), np.float32),
        np.zeros((2, 0, 3), np.int64),
        np.arange(2000),
        np.arange(40000.0, dtype=np.float32).reshape(200, 200),
        np.arange(3000).reshape(10, 300) - 5,
        np.arange(100, dtype=np.uint8),
    ],
)
def test_repr_is_pytorchs(array: Any) -> None:
    array = np.asarray(array)
    assert joined(repr(ot.from_numpy(array))) == joined(theirs(torch.from_numpy(array)))


@given(
    hnp.arrays(
        st.sampled_from([np.float32, np.float64, np.int64, np.bool_]),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=12),
    )
)
def test_repr_of_any_array_is_pytorchs(array: Any) -> None:
    assert joined(repr(ot.from_numpy(array))) == joined(theirs(torch.from_numpy(array)))


def test_repr_tells_grad() -> None:
    leaf = ot.tensor([1.0, 2.0], requires_grad=True)
    assert repr(leaf) == "tensor([1., 2.], requires_grad=True)"
    assert repr(leaf + 1) == "tensor([2., 3.], grad_fn=<AddBackward0>)"


def test_a_tensor_of_no_dimensions_is_formatted_as_its_number() -> None:
    assert f"{ot.tensor(2.0):.3f} {ot.tensor(7)} {ot.tensor(True)}" == "2.000 7 True"
    assert f"{ot.tensor([1.0])}" == "tensor([1.])"
    with pytest.raises(TypeError, match="format"):
        f"{ot.tensor([1.0]):.3f}"


def test_repr_opens_no_range() -> None:
    tensor = ot.from_numpy(np.zeros((50, 50)))
    with ranges() as seen:
        repr(tensor)
    assert seen == []


def test_dtype_reads_as_its_name() -> None:
    assert repr(ot.float32) == "opscope.tensor.float32"
