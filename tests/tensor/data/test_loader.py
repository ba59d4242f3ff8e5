"""DataLoader in one process: batches, orders, samplers, options; PyTorch's are the same."""

from __future__ import annotations

import random
from collections import namedtuple
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch.utils.data as torch_data

import opscope
from opscope import tensor as ot
from opscope.tensor import data
from tests.tensor.ranges import ranges

Point = namedtuple("Point", ["x", "y"])


class Squares(data.Dataset[tuple[int, int]]):
    def __init__(self, size: int = 10) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> tuple[int, int]:
        return index, index**2


class Count(data.IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(range(10))

    def __len__(self) -> int:
        return 10


class TorchCount(torch_data.IterableDataset):  # type: ignore[misc]
    def __iter__(self) -> Iterator[int]:
        return iter(range(10))


def plain(value: Any) -> Any:
    """Tensors of either library as lists."""
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return value.tolist() if hasattr(value, "tolist") else value


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch_size": 3},
        {"batch_size": 3, "drop_last": True},
        {"batch_size": 4, "sampler": [5, 1, 1, 2, 9]},
        {"batch_sampler": [[0], [1, 2], [3, 4, 5]]},
        {"batch_size": None},
        {"batch_size": None, "sampler": [2, 3]},
        {"batch_size": 2, "collate_fn": lambda samples: samples},
    ],
)
def test_batches_are_pytorchs(options: dict[str, Any]) -> None:
    dataset: Any = Squares()
    own = data.DataLoader(dataset, **options)
    their = torch_data.DataLoader(dataset, **options)
    assert plain(list(own)) == plain(list(their))
    assert len(own) == len(their)
    assert plain(list(own)) == plain(list(own))


@pytest.mark.parametrize(
    "options", [{}, {"batch_size": 4}, {"batch_size": 4, "drop_last": True}, {"batch_size": None}]
)
def test_batches_of_a_stream_are_pytorchs(options: dict[str, Any]) -> None:
    own = data.DataLoader(Count(), **options)
    assert plain(list(own)) == plain(list(torch_data.DataLoader(TorchCount(), **options)))
    assert len(own) == len(list(own))


@pytest.mark.parametrize(
    "samples",
    [
        [1, 2],
        [1.5, 2.5],
        [True, False],
        ["a", "b"],
        [{"x": 1, "y": [1.0, "t"]}, {"x": 2, "y": [2.0, "u"]}],
        [Point(1, 2), Point(3, 4)],
        [(1, (2, 3.5)), (4, (5, 6.5))],
        [np.float32(1), np.float32(2)],
        [np.arange(3), np.arange(3)],
        [[np.ones((2, 2)), 1], [np.zeros((2, 2)), 2]],
    ],
)
def test_samples_collate_as_pytorchs(samples: Any) -> None:
    own, their = data.default_collate(samples), torch_data.default_collate(samples)
    assert type(own).__name__ == type(their).__name__

    def same(one: Any, other: Any) -> None:
        if isinstance(one, dict):
            assert one.keys() == other.keys()
            for key in one:
                same(one[key], other[key])
        elif isinstance(one, list | tuple):
            assert type(one) is type(other)
            for parts in zip(one, other, strict=True):
                same(*parts)
        elif isinstance(one, ot.Tensor):
            np.testing.assert_array_equal(one.numpy(), other.numpy(), strict=True)
        else:
            assert one == other

    same(own, their)


def test_tensors_are_stacked_by_one_operator() -> None:
    with ranges() as seen:
        batch = data.default_collate([ot.zeros((2, 3)), ot.ones((2, 3))])
    assert batch.shape == (2, 2, 3)
    assert [name for name, _ in seen][2:] == ["core::stack"]


@pytest.mark.parametrize(
    ("samples", "error", "text"),
    [
        ([object()], TypeError, "not object; give the DataLoader a collate_fn"),
        ([None], TypeError, "NoneType"),
        ([[1, 2], [1]], RuntimeError, r"unequal lengths: \[1, 2\]"),
        ([np.array(["a"])], TypeError, "<U1"),
        ([ot.zeros((2,)), ot.zeros((3,))], RuntimeError, "core::stack"),
    ],
)
def test_samples_that_do_not_collate_are_refused_with_the_reason(
    samples: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        data.default_collate(samples)


def test_arrays_become_tensors_without_batches() -> None:
    converted = data.default_convert({"a": np.arange(2), "b": [np.float64(1), "t"], "c": (1,)})
    assert converted["a"].tolist() == [0, 1]
    assert converted["b"][0].item() == 1
    assert converted["b"][1] == "t"
    assert converted["c"] == [1]


def test_a_shuffle_visits_all_and_follows_from_the_seed() -> None:
    loader = data.DataLoader(Squares(100), batch_size=10, shuffle=True)

    def order() -> list[int]:
        return [index for batch in loader for index in batch[0].tolist()]

    ot.manual_seed(1)
    first, second = order(), order()
    assert sorted(first) == sorted(second) == list(range(100))
    assert first != second
    ot.manual_seed(1)
    assert [order(), order()] == [first, second]


def test_a_generator_decides_the_order() -> None:
    orders = [
        plain(list(data.DataLoader(Squares(), shuffle=True, generator=random.Random(seed))))
        for seed in (3, 3, 4)
    ]
    assert orders[0] == orders[1] != orders[2]


def test_a_dataset_of_tensors_gives_their_rows() -> None:
    inputs, targets = ot.tensor(np.arange(12.0).reshape(6, 2)), ot.tensor(np.arange(6))
    dataset = data.TensorDataset(inputs, targets)
    assert len(dataset) == 6
    batches = list(data.DataLoader(dataset, batch_size=4))
    assert batches[1][0].tolist() == [[8, 9], [10, 11]]
    assert batches[1][1].tolist() == [4, 5]
    with pytest.raises(ValueError, match=r"\(6, 2\), \(3,\)"):
        data.TensorDataset(inputs, targets[:3])


def test_a_dataset_may_give_a_whole_batch() -> None:
    class Whole(Squares):
        def __getitems__(self, indices: list[int]) -> list[int]:
            return [-index for index in indices]

    assert plain(list(data.DataLoader(Whole(4), batch_size=2))) == [[0, -1], [-2, -3]]


def test_each_wait_of_the_consumer_is_one_range_that_has_not_failed() -> None:
    failed: list[bool] = []
    handle = opscope.add_thread_local_callback(
        end=lambda fn, _: failed.append(fn.failed) if fn.name == "data::next" else None
    )
    list(data.DataLoader(Squares(), batch_size=5))
    opscope.remove_callback(handle)
    assert failed == [False] * 3  # two batches, and finding that there is no third


def test_outside_of_a_worker_there_is_no_worker_info() -> None:
    assert data.get_worker_info() is None


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"num_workers": -1}, "num_workers"),
        ({"timeout": -1}, "timeout"),
        ({"prefetch_factor": 2}, "prefetch_factor"),
        ({"persistent_workers": True}, "persistent_workers"),
        ({"batch_size": 0}, "batch_size must be a positive int, not 0"),
        ({"batch_size": 2.5}, "not 2.5"),
        ({"batch_size": None, "drop_last": True}, "drop_last"),
        ({"shuffle": True, "sampler": [1]}, "exclude each other"),
        ({"batch_sampler": [[1]], "batch_size": 2}, "batch_sampler excludes"),
        ({"batch_sampler": [[1]], "shuffle": True}, "batch_sampler excludes"),
    ],
)
def test_options_that_exclude_each_other_are_refused(options: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        data.DataLoader(Squares(), **options)


@pytest.mark.parametrize("options", [{"shuffle": True}, {"sampler": [1]}, {"batch_sampler": [[1]]}])
def test_a_stream_has_its_own_order(options: Any) -> None:
    with pytest.raises(ValueError, match="IterableDataset has its own order"):
        data.DataLoader(Count(), **options)


def test_datasets_that_define_nothing_say_so() -> None:
    with pytest.raises(NotImplementedError, match="Dataset defines no __getitem__"):
        data.Dataset[int]()[0]
    with pytest.raises(NotImplementedError, match="IterableDataset defines no __iter__"):
        iter(data.IterableDataset[int]())
