"""Tensors survive pickle, copy and deepcopy; memory is passed out of band on request."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from opscope import tensor as ot
from opscope.tensor import nn
from tests.tensor.ranges import ranges

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


@given(
    hnp.arrays(
        st.sampled_from([np.float32, np.float64, np.int32, np.int64, np.uint8, np.bool_]),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0),
    ),
    st.sampled_from(PROTOCOLS),
    st.booleans(),
)
def test_elements_dtype_and_sizes_come_back(array: Any, protocol: int, turned: bool) -> None:
    array = np.asarray(array)
    tensor = ot.from_numpy(array.T if turned else array)
    again = pickle.loads(pickle.dumps(tensor, protocol))
    np.testing.assert_array_equal(again.numpy(), tensor.numpy(), strict=True)
    assert not again.is_read_only
    if again.numel():
        assert again.data_ptr() != tensor.data_ptr()


@pytest.mark.parametrize("dtype", [ot.float16, ot.bfloat16])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_half_precision_comes_back(dtype: Any, protocol: int) -> None:
    tensor = ot.tensor([1.5, -2.25]).to(dtype)
    again = pickle.loads(pickle.dumps(tensor, protocol))
    assert again.dtype is dtype
    assert again.tolist() == [1.5, -2.25]


def test_memory_travels_out_of_band_without_a_copy() -> None:
    tensor = ot.zeros((1000,))
    buffers: list[pickle.PickleBuffer] = []
    text = pickle.dumps(tensor, 5, buffer_callback=buffers.append)
    assert len(text) < 300
    assert pickle.loads(text, buffers=buffers).data_ptr() == tensor.data_ptr()


def test_a_read_only_tensor_comes_back_writable() -> None:
    array = np.zeros(3)
    array.flags.writeable = False
    for protocol in PROTOCOLS:
        again = pickle.loads(pickle.dumps(ot.from_numpy(array), protocol))
        again.fill_(1)
    assert array.sum() == 0


def test_a_leaf_comes_back_as_a_leaf_that_requires_grad() -> None:
    leaf = ot.tensor([1.0], requires_grad=True)
    for tensor in (leaf, leaf * 2):
        again = pickle.loads(pickle.dumps(tensor))
        assert again.requires_grad
        assert again.is_leaf
        assert again.tolist() == tensor.tolist()


def test_parameters_and_attributes_come_back() -> None:
    parameter = nn.Parameter(ot.tensor([1.0]))
    parameter.note = "frozen"  # type: ignore[attr-defined]
    copies = [pickle.loads(pickle.dumps(parameter)), copy.copy(parameter), copy.deepcopy(parameter)]
    for again in copies:
        assert type(again) is nn.Parameter
        assert again.requires_grad
        assert vars(again) == {"note": "frozen"}


def test_a_copy_shares_memory_and_a_deep_copy_does_not() -> None:
    tensor = ot.tensor([[1.0, 2.0], [3.0, 4.0]]).t()
    shared, own = copy.copy(tensor), copy.deepcopy(tensor)
    tensor.fill_(0)
    assert shared.tolist() == [[0, 0], [0, 0]]
    assert own.tolist() == [[1, 3], [2, 4]]
    one, other = copy.deepcopy([tensor, tensor])
    assert one is other


def test_a_deep_copy_has_a_gradient_of_its_own() -> None:
    leaf = ot.tensor([1.0], requires_grad=True)
    (leaf * 3).sum().backward()
    twin = copy.deepcopy(leaf)
    assert leaf.grad is not None
    leaf.grad.fill_(0)
    assert twin.grad is not None
    assert twin.grad.tolist() == [3]
    with pytest.raises(RuntimeError, match=r"deepcopy\(\): .*AddBackward0.* shape \(1,\)"):
        copy.deepcopy(leaf + 1)


def test_copying_opens_no_range() -> None:
    tensor = ot.tensor([[1.0, 2.0]]).t()
    with ranges() as seen:
        pickle.loads(pickle.dumps(tensor))
        copy.deepcopy(tensor)
        copy.copy(tensor)
    assert seen == []


def test_setting_data_replaces_the_memory() -> None:
    leaf = ot.tensor([1.0, 2.0], requires_grad=True)
    held = leaf.data
    assert not held.requires_grad
    assert held.data_ptr() == leaf.data_ptr()
    (leaf * 2).sum().backward()
    leaf.data = ot.tensor([5.0, 6.0])
    assert leaf.tolist() == [5, 6]
    assert leaf.requires_grad
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [2, 2]
    leaf.data = ot.tensor([[1.0]], dtype=ot.float64)
    assert (leaf.shape, leaf.dtype) == ((1, 1), ot.float64)
    assert getattr(leaf, "grad", leaf) is None
    with pytest.raises(RuntimeError, match="for a leaf only"):
        (leaf * 2).data = leaf
    with pytest.raises(TypeError, match="must be a Tensor, not list"):
        leaf.data = [1.0]  # type: ignore[assignment]
    with pytest.raises(RuntimeError, match="int64"):
        leaf.data = ot.tensor([1])
    with pytest.raises(AttributeError):
        del leaf.data


@pytest.mark.parametrize(
    ("buffer", "shape", "error", "text"),
    [
        (bytearray(7), (2,), ValueError, r"7 bytes does not hold a float32 tensor of sizes \(2,\)"),
        (memoryview(bytearray(9))[1:], (2,), ValueError, "not aligned"),
        (bytearray(8), (-1,), ValueError, "negative"),
        (bytearray(8), (2**40, 2**40), ValueError, "does not hold"),
        (bytearray(8), (1,) * 17, ValueError, "at most 16"),
        (3, (1,), TypeError, "int"),
    ],
)
def test_pickles_that_do_not_fit_are_refused(
    buffer: Any, shape: Any, error: type[Exception], text: str
) -> None:
    from opscope._tensor import over_bytes

    with pytest.raises(error, match=text):
        over_bytes(buffer, ot.float32, shape)


def test_tensors_that_share_memory_share_it_after_a_pickle() -> None:
    base = ot.arange(12).reshape(3, 4)
    for protocol in PROTOCOLS:
        again = pickle.loads(pickle.dumps([base, base.T, base[1], base[1:, ::2]], protocol))
        again[2].fill_(-1)
        assert again[0].tolist() == [[0, 1, 2, 3], [-1] * 4, [8, 9, 10, 11]]
        assert again[1][:, 1].tolist() == [-1] * 4
        assert again[3].tolist() == [[-1, -1], [8, 10]]
        assert again[1].strides == base.T.strides
    assert base[1].tolist() == [4, 5, 6, 7]


def test_a_pickle_has_each_storage_once() -> None:
    base = ot.zeros(10_000)
    assert len(pickle.dumps([base, base[5:], base.reshape(100, 100)])) < 41_000


def test_tied_parameters_stay_tied() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].weight = model[0].weight
    again = pickle.loads(pickle.dumps(model))
    assert again[1].weight is again[0].weight
