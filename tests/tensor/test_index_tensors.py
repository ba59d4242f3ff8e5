"""Tensors of indices and masks, several in one index, read and write what PyTorch's do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from opscope import tensor as ot
from tests.examples import examples
from tests.tensor.ranges import ranges

SIZES = (3, 4, 2, 5)
SOURCE = np.arange(float(np.prod(SIZES))).reshape(SIZES)


@st.composite
def keys(draw: Any) -> tuple[Any, ...]:
    """An index of at most one item per dimension; arrays represent tensors."""
    shape = draw(st.sampled_from([(), (1,), (3,), (2, 3), (2, 1), (0,)]))
    items: list[Any] = []
    dim = 0
    while dim < len(SIZES):
        kind = draw(st.sampled_from(["int", "slice", "indices", "mask", "none", "truth", "end"]))
        size = SIZES[dim]
        if kind == "end":
            break
        if kind == "none":
            items.append(None)
            continue
        if kind == "truth":
            items.append(draw(st.booleans()))
            continue
        if kind == "int":
            items.append(draw(st.integers(-size, size - 1)))
        elif kind == "slice":
            step = draw(st.sampled_from([None, 1, 2]))
            start, stop = (draw(st.integers(-6, 6) | st.none()) for _ in range(2))
            items.append(slice(start, stop, step))
        elif kind == "indices":
            # All broadcast together, some with a size of 1.
            own = tuple(draw(st.sampled_from([each, 1])) if each > 1 else each for each in shape)
            count = int(np.prod(own))
            values = draw(st.lists(st.integers(-size, size - 1), min_size=count, max_size=count))
            items.append(np.array(values, np.int64).reshape(own))
        else:
            dims = draw(st.integers(1, min(2, len(SIZES) - dim)))
            # As many true elements as broadcast with the tensors of indices: one, or their number.
            mask = np.zeros(SIZES[dim : dim + dims], np.bool_)
            mask[tuple(draw(st.integers(0, each - 1)) for each in mask.shape)] = True
            items.append(mask)
            dim += dims - 1
        dim += 1
    if draw(st.booleans()) and dim < len(SIZES):
        items.append(...)
    return tuple(items)


def of(key: tuple[Any, ...], make: Any) -> tuple[Any, ...]:
    return tuple(make(item) if isinstance(item, np.ndarray) else item for item in key)


def outcome(run: Any) -> Any:
    """Its result; for sizes that do not broadcast, an error."""
    try:
        return run()
    except (IndexError, RuntimeError, ValueError) as error:
        return type(error).__name__ and "refused"


@examples(60)
@given(keys())
def test_reading_takes_the_elements_pytorch_takes(key: tuple[Any, ...]) -> None:
    taken = outcome(lambda: ot.from_numpy(SOURCE)[of(key, ot.tensor)].numpy())
    expected = outcome(lambda: torch.from_numpy(SOURCE)[of(key, torch.from_numpy)].numpy())
    np.testing.assert_array_equal(taken, expected, strict=True)


@examples(60)
@given(keys(), st.sampled_from(["number", "one", "all"]))
def test_writing_changes_the_elements_pytorch_changes(key: tuple[Any, ...], kind: str) -> None:
    own, their = SOURCE.copy(), SOURCE.copy()
    shape = outcome(lambda: torch.from_numpy(SOURCE)[of(key, torch.from_numpy)].shape)
    if shape == "refused":
        return
    # Equal values, because it is undefined which of several values for one element wins.
    ones = (1,) * (len(shape) + 2)  # more dimensions than the tensor, all of size 1
    value: Any = {"number": 7.5, "one": np.full(ones, 7.5), "all": np.full(shape, 7.5)}[kind]

    def write(target: Any, make: Any) -> None:
        target[of(key, make)] = value if kind == "number" else make(value)

    write(ot.from_numpy(own), ot.tensor)
    write(torch.from_numpy(their), torch.tensor)
    np.testing.assert_array_equal(own, their)


@examples(20)
@given(keys())
def test_gradients_of_reading_and_writing_are_pytorchs(key: tuple[Any, ...]) -> None:
    shape = outcome(lambda: torch.from_numpy(SOURCE)[of(key, torch.from_numpy)].shape)
    if shape == "refused":
        return
    scale = np.random.default_rng(0).normal(size=SIZES)
    values = np.random.default_rng(1).normal(size=shape)

    def run(lib: Any, make: Any) -> list[Any]:
        leaf, value = make(SOURCE), make(values)
        leaf.requires_grad = value.requires_grad = True
        (leaf[of(key, make)] * value).sum().backward()
        read = leaf.grad.tolist()
        for each in (leaf, value):
            each.grad = None
        written = leaf * 1
        written[of(key, make)] = value
        (written * make(scale)).sum().backward()
        return [read, leaf.grad.tolist(), value.grad.tolist()]

    for own, their in zip(run(ot, ot.tensor), run(torch, torch.tensor), strict=True):
        np.testing.assert_allclose(np.array(own), np.array(their), rtol=1e-12)


@pytest.mark.parametrize(
    "key",
    [
        ([0, 2], [1, 3]),
        (slice(None), [[0], [2]], [0, 1]),
        ([0, 2], slice(None), [1, 0]),
        ([0, 2], None, [1, 0]),
        (1, slice(None), [1, 0]),
        ([True, False, True], [1, 3]),
        ([], [1]),
        ([0, 1], ..., [4, 0]),
        (..., [1, 0], slice(None, None, 2)),
        range(2),
    ],
)
def test_lists_and_ranges_are_tensors_of_indices(key: Any) -> None:
    taken = ot.from_numpy(SOURCE)[key]
    expected = torch.from_numpy(SOURCE)[list(key) if isinstance(key, range) else key]
    np.testing.assert_array_equal(taken.numpy(), expected.numpy(), strict=True)


def test_arrays_are_tensors_of_indices() -> None:
    tensor = ot.from_numpy(SOURCE)
    assert tensor[np.array([2, 0]), np.int64(1)].shape == (2, 2, 5)
    assert tensor[SOURCE[:, 0, 0, 0] > 0].shape == (2, 4, 2, 5)
    assert tensor[np.bool_(True)].shape == (1, *SIZES)


def test_the_last_of_several_values_for_one_place_stays() -> None:
    tensor = ot.zeros((3,))
    tensor[[0, 0, 2]] = ot.tensor([1.0, 2.0, 3.0])
    assert tensor.tolist() == [2, 0, 3]


def test_values_take_the_dtype_of_the_tensor() -> None:
    tensor = ot.zeros((3,), dtype=ot.int64)
    tensor[[0, 1]] = ot.tensor([1.75, 2.5])
    tensor[tensor == 0] = 9
    assert tensor.tolist() == [1, 2, 9]


def test_a_mask_of_leading_dimensions_writes_whole_rows() -> None:
    tensor = ot.zeros((2, 2))
    tensor[ot.tensor([True, False])] = 5
    assert tensor.tolist() == [[5, 5], [0, 0]]


def test_writing_through_an_index_reaches_the_memory_of_a_view() -> None:
    array = np.zeros((4, 6))
    ot.from_numpy(array)[::2].t()[[1, 5], 1] = ot.tensor([3.0, 4.0])
    assert array[2].tolist() == [0, 3, 0, 0, 0, 4]
    assert array.sum() == 7


def test_one_call_of_the_core_reads_and_one_writes() -> None:
    tensor = ot.tensor(SOURCE)
    with ranges() as seen:
        _ = tensor[[0, 1], [1, 2]]
        tensor[[0, 1], [1, 2]] = 3
    assert [name for name, _ in seen] == ["core::index", "core::index_put_"]


@pytest.mark.parametrize(
    ("key", "value", "error", "text"),
    [
        (([0, 1], [0, 1, 2]), 1, RuntimeError, r"\[2\] and \[3\]"),
        (([0, 3],), 1, IndexError, "index 3 .* size 3"),
        (([0, 1],), [1.0, 2.0, 3.0], RuntimeError, r"\[3\] do not broadcast"),
        (([0], [0], [0], [0], [0]), 1, IndexError, r"too many indices \(5\)"),
        (([True, False],), 1, IndexError, "size 2 at its dim 0"),
        (([0.5],), 1, IndexError, "float32"),
        ((["a"],), 1, TypeError, "str"),
    ],
)
def test_wrong_indices_and_values_are_refused_with_the_reason(
    key: Any, value: Any, error: type[Exception], text: str
) -> None:
    tensor = ot.tensor(SOURCE)
    with pytest.raises(error, match=text):
        tensor[key] = value
    assert (tensor.numpy() == SOURCE).all()
