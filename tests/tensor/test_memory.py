"""Memory shared with NumPy, PyTorch and others: lifetimes, and refused cases."""

from __future__ import annotations

import array
import gc
import io
import weakref
from typing import Any

import numpy as np
import pytest
import torch

from opscope import tensor as ot


class Tracked(np.ndarray):
    """An array that supports weak references."""


def tracked(*shape: int) -> Any:
    return np.arange(float(np.prod(shape, dtype=int))).reshape(shape).view(Tracked)


def test_from_numpy_shares_memory() -> None:
    source = np.zeros((2, 3), np.float32)
    tensor = ot.from_numpy(source)
    source[1, 2] = 5
    assert tensor.data_ptr() == source.ctypes.data
    assert tensor.tolist() == [[0, 0, 0], [0, 0, 5]]


def test_array_lives_as_long_as_the_last_view() -> None:
    source = tracked(4, 4)
    alive = weakref.ref(source)
    view = ot.from_numpy(source)[1:]
    del source
    gc.collect()
    assert alive() is not None
    assert view.tolist()[0] == [4, 5, 6, 7]
    del view
    gc.collect()
    assert alive() is None


def test_numpy_shares_memory_and_keeps_it() -> None:
    tensor = ot.tensor([[1.0, 2.0], [3.0, 4.0]])
    address = tensor.data_ptr()
    shared = tensor.numpy()
    del tensor
    gc.collect()
    assert shared.ctypes.data == address
    assert shared.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "int32", "int64", "uint8", "bool", "float16"]
)
def test_dtypes_go_both_ways(dtype: str) -> None:
    source = np.ones((2, 2), dtype)
    tensor = ot.from_numpy(source)
    assert tensor.dtype.name == dtype
    assert tensor.numpy().dtype == source.dtype


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (2, 3)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_shapes_and_strides_go_both_ways(shape: tuple[int, ...], order: Any) -> None:
    source = np.array(np.random.default_rng(0).normal(size=shape), order=order)
    np.testing.assert_array_equal(ot.from_numpy(source).numpy(), source, strict=True)


def test_negative_and_zero_strides_are_kept() -> None:
    source = np.arange(6.0).reshape(2, 3)
    flipped = ot.from_numpy(source[::-1, ::-2])
    assert flipped.strides == (-3, -2)
    assert flipped.tolist() == [[5, 3], [2, 0]]
    spread = ot.from_numpy(np.broadcast_to(source[:, None], (2, 4, 3)))
    assert spread.strides == (3, 0, 1)


def test_read_only_array_gives_a_tensor_that_refuses_writes() -> None:
    source = np.arange(3.0)
    source.flags.writeable = False
    tensor = ot.from_numpy(source)
    assert tensor.is_read_only
    with pytest.raises((RuntimeError, ValueError), match="read-only"):
        tensor += 1
    with pytest.raises(BufferError, match="read-only"):
        tensor.__dlpack__()
    assert not tensor.numpy().flags.writeable
    assert source.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("source", "error"),
    [
        (np.zeros(2, ">f4"), TypeError),
        (np.zeros(2, "complex64"), TypeError),
        (np.zeros(2, "int16"), TypeError),
        (np.zeros(2, [("a", "f4"), ("b", "i2")])["a"], ValueError),
        ([1, 2], TypeError),
        (ot.tensor([1.0]), TypeError),
    ],
)
def test_from_numpy_refuses_what_it_cannot_share(source: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        ot.from_numpy(source)


def test_any_buffer_can_be_shared() -> None:
    numbers = array.array("d", [1, 2, 3])
    tensor = ot.from_numpy(numbers)
    numbers[0] = 7
    assert tensor.tolist() == [7, 2, 3]
    with pytest.raises(BufferError):
        numbers.append(4)


def test_memoryview_of_a_tensor_has_its_layout() -> None:
    tensor = ot.tensor([[1, 2, 3], [4, 5, 6]], dtype=ot.int32)
    view = memoryview(tensor)
    assert (view.shape, view.strides, view.format, view.readonly) == ((2, 3), (12, 4), "i", False)
    assert np.asarray(view).tolist() == [[1, 2, 3], [4, 5, 6]]


def test_buffer_of_a_tensor_that_is_not_contiguous_needs_strides() -> None:
    tensor = ot.from_numpy(np.zeros((4, 4))[:, ::2])
    with pytest.raises(BufferError, match="contiguous"):
        io.BytesIO().write(tensor)
    assert np.asarray(tensor).strides == (32, 16)


def test_numpy_refuses_a_tensor_that_requires_grad() -> None:
    tensor = ot.tensor([1.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="detach"):
        tensor.numpy()
    with pytest.raises(RuntimeError, match="detach"):
        np.asarray(tensor)
    with pytest.raises(BufferError, match="detach"):
        tensor.__dlpack__()


def test_array_protocol_copies_on_request_only() -> None:
    tensor = ot.tensor([1.0, 2.0])
    assert tensor.__array__().ctypes.data == tensor.data_ptr()
    assert tensor.__array__(copy=True).ctypes.data != tensor.data_ptr()
    assert tensor.__array__(np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="copy"):
        tensor.__array__(np.float64, copy=False)


def test_dlpack_to_numpy_and_pytorch_shares_memory() -> None:
    tensor = ot.tensor([[1.0, 2.0], [3.0, 4.0]])
    for other in (np.from_dlpack(tensor), torch.from_dlpack(tensor)):
        other[0, 0] += 1
    assert tensor.tolist() == [[3, 2], [3, 4]]


def test_dlpack_from_numpy_and_pytorch_shares_memory() -> None:
    source = np.arange(6.0).reshape(2, 3).T
    tensor = ot.from_dlpack(source)
    assert tensor.data_ptr() == source.ctypes.data
    assert tensor.strides == (1, 3)
    other = torch.arange(6, dtype=torch.bfloat16)[::2]
    tensor = ot.from_dlpack(other)
    assert (tensor.dtype, tensor.strides) == (ot.bfloat16, (2,))
    assert tensor.tolist() == [0, 2, 4]


def test_dlpack_owner_lives_as_long_as_the_last_view() -> None:
    source = tracked(3)
    alive = weakref.ref(source)
    view = ot.from_dlpack(source)[1:]
    del source
    gc.collect()
    assert alive() is not None
    del view
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_dlpack_capsule_is_taken_once(version: Any) -> None:
    tensor = ot.tensor([1.0, 2.0])
    capsule = tensor.__dlpack__(max_version=version)
    taken = ot.from_dlpack(capsule)
    assert taken.data_ptr() == tensor.data_ptr()
    with pytest.raises(ValueError, match="taken once"):
        ot.from_dlpack(capsule)
    del tensor, capsule
    gc.collect()
    assert taken.tolist() == [1, 2]


@pytest.mark.parametrize("version", [None, (1, 0)])
def test_an_unused_dlpack_capsule_frees_its_tensor(version: Any) -> None:
    source = tracked(3)
    alive = weakref.ref(source)
    capsule = ot.from_numpy(source).__dlpack__(max_version=version)
    del source
    gc.collect()
    assert alive() is not None
    del capsule
    gc.collect()
    assert alive() is None


def test_dlpack_says_read_only_where_it_can() -> None:
    source = np.arange(3.0)
    source.flags.writeable = False
    assert ot.from_dlpack(ot.from_numpy(source)).is_read_only
    assert not np.from_dlpack(ot.from_numpy(source)).flags.writeable


def test_dlpack_copy_is_a_copy() -> None:
    tensor = ot.tensor([1.0])
    assert ot.from_dlpack(tensor.__dlpack__(copy=True)).data_ptr() != tensor.data_ptr()


def test_dlpack_gives_no_negative_steps() -> None:
    # PyTorch ends the process on one.
    tensor = ot.arange(6.0).reshape(2, 3)[:, ::-1]
    for version in (None, (1, 0)):
        with pytest.raises(BufferError, match=r"dimension 1 .* negative stride.*clone\(\)"):
            tensor.__dlpack__(max_version=version)
    copy = torch.from_dlpack(tensor.clone())
    assert copy.tolist() == tensor.tolist()
    assert ot.from_dlpack(tensor.__dlpack__(copy=True)).tolist() == tensor.tolist()


def test_dlpack_takes_no_memory_that_is_not_aligned() -> None:
    askew = torch.frombuffer(bytearray(41), dtype=torch.float32, offset=1)
    with pytest.raises(BufferError, match="not aligned to its elements"):
        ot.from_dlpack(askew)


@pytest.mark.parametrize("pair", ["1.0", 1, [1, 0], (1,), ("1", "0")])
def test_dlpack_versions_and_devices_are_pairs_of_ints(pair: Any) -> None:
    tensor = ot.tensor([1.0])
    with pytest.raises(TypeError):
        tensor.__dlpack__(max_version=pair)
    with pytest.raises(TypeError):
        tensor.__dlpack__(dl_device=pair)


def test_dlpack_refuses_other_devices_and_streams() -> None:
    tensor = ot.tensor([1.0])
    assert tensor.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError, match=r"\(2, 0\)"):
        tensor.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError, match="stream"):
        tensor.__dlpack__(stream=1)
    with pytest.raises(TypeError, match="__dlpack__"):
        ot.from_dlpack([1])


def test_views_share_their_storage() -> None:
    tensor = ot.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    view = tensor[1:, ::2]
    assert view.storage().data_ptr() == tensor.storage().data_ptr()
    assert view.storage().nbytes() == 24
    assert (view.storage_offset(), view.strides) == (3, (3, 2))
    assert view.data_ptr() == tensor.data_ptr() + 12


def test_tensor_copies() -> None:
    source = np.arange(6.0).reshape(2, 3)[:, ::-1]
    tensor = ot.tensor(source)
    source[...] = 0
    assert tensor.tolist() == [[2, 1, 0], [5, 4, 3]]
    assert ot.tensor(tensor).data_ptr() != tensor.data_ptr()


def test_weak_references_to_tensors_work() -> None:
    tensor = ot.tensor([1.0])
    alive = weakref.ref(tensor)
    assert alive() is tensor
    del tensor
    assert alive() is None
