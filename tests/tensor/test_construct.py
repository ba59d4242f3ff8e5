"""`tensor(...)` from Python objects, and a tensor's elements as Python objects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from opscope import tensor as ot


@pytest.mark.parametrize(
    "data",
    [
        3,
        2.5,
        True,
        [],
        [[]],
        [1, 2],
        [1, 2.5],
        [True, False],
        [True, 2],
        [[1, 2], [3, 4]],
        ((1.0,), (2.0,)),
        [[[1]], [[2]]],
        [float("inf"), float("nan")],
    ],
)
def test_tensor_of_numbers_is_pytorchs(data: Any) -> None:
    own, their = ot.tensor(data), torch.tensor(data)
    assert own.shape == tuple(their.shape)
    assert own.dtype.name == str(their.dtype).removeprefix("torch.")
    np.testing.assert_array_equal(own.numpy(), their.numpy())


@pytest.mark.parametrize(
    ("data", "error", "text"),
    [
        ([[1, 2], [3]], ValueError, "length 2 at dim 1"),
        ([1, [2]], ValueError, "dim 1"),
        ([[1], 2], ValueError, "length 1 at dim 1"),
        (["a"], TypeError, "not str"),
        ("abc", TypeError, "not str"),
        (None, TypeError, "not NoneType"),
        ([1 << 70], OverflowError, "too"),
    ],
)
def test_tensor_refuses_with_the_reason(data: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        ot.tensor(data)


def test_number_that_does_not_fit_its_dtype_is_refused() -> None:
    with pytest.raises(OverflowError, match="300 does not fit into uint8"):
        ot.tensor([300], dtype=ot.uint8)


def test_lists_of_arrays_and_tensors_are_sequences() -> None:
    assert ot.tensor([np.array([1.0, 2.0]), np.array([3.0, 4.0])]).tolist() == [[1, 2], [3, 4]]
    assert ot.tensor([ot.tensor(1), ot.tensor(2)]).dtype is ot.int64
    assert ot.tensor([np.float32(1.5), np.int64(2)]).tolist() == [1.5, 2]


def test_levels_beyond_the_limit_are_refused() -> None:
    data: Any = 1
    for _ in range(17):
        data = [data]
    with pytest.raises(ValueError, match="16 levels"):
        ot.tensor(data)


@given(
    hnp.arrays(
        st.sampled_from([np.float32, np.float64, np.int32, np.int64, np.uint8, np.bool_]),
        hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3),
    )
)
def test_tolist_is_numpys(array: Any) -> None:
    assert repr(ot.from_numpy(array).tolist()) == repr(array.tolist())


def test_one_element_is_a_number() -> None:
    assert ot.tensor([[2.5]]).item() == 2.5
    assert int(ot.tensor([2.5])) == 2
    assert float(ot.tensor(3)) == 3.0
    assert [10, 20, 30][ot.tensor(1)] == 20
    assert bool(ot.tensor(0.0)) is False
    with pytest.raises(TypeError, match="integer"):
        [1][ot.tensor(0.0)]


def test_many_elements_are_no_number() -> None:
    for use in (bool, float, int, lambda tensor: tensor.item()):
        with pytest.raises(ValueError, match="2"):
            use(ot.tensor([1, 2]))


def test_half_precision_elements_read_as_their_value() -> None:
    values = np.array([0, -0.0, 1, -2.5, 6.1e-5, 5.96e-8, 65504, np.inf, -np.inf], np.float16)
    assert ot.from_numpy(values).tolist() == values.tolist()
    assert np.isnan(ot.from_numpy(np.array([np.nan], np.float16)).tolist()[0])


def test_subclass_shares_storage_and_keeps_its_type() -> None:
    class Weight(ot.Tensor):
        label: str

    source = ot.tensor([1.0, 2.0])
    weight = Weight(source)
    weight.label = "w"
    assert type(weight) is Weight
    assert weight.data_ptr() == source.data_ptr()
    with pytest.raises(TypeError, match=r"opscope\.tensor\.tensor"):
        Weight([1, 2])
