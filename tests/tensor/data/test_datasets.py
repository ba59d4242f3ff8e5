"""Datasets made of datasets, and samplers: lengths, samples and shares are PyTorch's."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
import torch.utils.data

from opscope import tensor as ot
from opscope.tensor import data

NUMBERS: Any = list(range(10))


def test_utils_data_has_the_names_of_data() -> None:
    assert ot.utils.data.DataLoader is data.DataLoader
    import opscope.tensor.utils.data as named

    assert named.random_split is data.random_split


def test_a_subset_has_the_samples_of_its_indices() -> None:
    subset = data.Subset(NUMBERS, [3, 1])
    assert len(subset) == 2
    assert [subset[0], subset[1]] == [3, 1]
    batches = list(data.DataLoader(subset, batch_size=2))
    assert batches[0].tolist() == [3, 1]


@pytest.mark.parametrize("lengths", [[7, 3], [0.5, 0.5], [0.33, 0.33, 0.34], [10, 0]])
def test_a_random_split_has_pytorchs_lengths_and_every_sample_once(lengths: Any) -> None:
    generator = ot.Generator().manual_seed(1)
    parts = data.random_split(NUMBERS, lengths, generator=generator)
    theirs = torch.utils.data.random_split(NUMBERS, lengths)
    assert [len(part) for part in parts] == [len(part) for part in theirs]
    whole = [part[place] for part in parts for place in range(len(part))]
    assert sorted(whole) == NUMBERS
    again = data.random_split(NUMBERS, lengths, generator=ot.Generator().manual_seed(1))
    assert [part.indices for part in again] == [part.indices for part in parts]


def test_a_split_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="sum to 9, the dataset has 10"):
        data.random_split(NUMBERS, [4, 5])


def test_datasets_are_joined() -> None:
    class Letters(data.Dataset[str]):
        def __init__(self, text: str) -> None:
            self.text = text

        def __getitem__(self, index: Any) -> str:
            return self.text[index]

        def __len__(self) -> int:
            return len(self.text)

    joined = Letters("ab") + Letters("cde")
    assert "".join(joined[place] for place in range(len(joined))) == "abcde"
    assert joined[-1] == "e"
    with pytest.raises(ValueError, match="index 5 of 5"):
        joined[5]
    stacked = data.StackDataset(Letters("ab"), Letters("xy"))
    assert stacked[1] == ("b", "y")
    assert data.StackDataset(a=Letters("ab"))[0] == {"a": "a"}

    class Stream(data.IterableDataset[int]):
        def __iter__(self) -> Any:
            return iter([1, 2])

    assert list(data.ChainDataset([Stream(), Stream()])) == [1, 2, 1, 2]


def test_samplers_draw_what_they_promise() -> None:
    seeded = [data.RandomSampler(NUMBERS, generator=ot.Generator().manual_seed(4)) for _ in "ab"]
    assert list(seeded[0]) == list(seeded[1])
    assert sorted(data.RandomSampler(NUMBERS, num_samples=20)) == sorted(NUMBERS * 2)
    drawn = list(data.RandomSampler(NUMBERS, replacement=True, num_samples=400))
    assert len(drawn) == 400
    assert set(drawn) == set(NUMBERS)
    assert sorted(data.SubsetRandomSampler([5, 7, 9])) == [5, 7, 9]
    generator = ot.Generator().manual_seed(0)
    weighted = list(data.WeightedRandomSampler([0, 1, 3], 4000, generator=generator))
    assert weighted.count(0) == 0
    assert weighted.count(2) / weighted.count(1) == pytest.approx(3, rel=0.15)
    assert sorted(data.WeightedRandomSampler([1, 2, 0], 2, replacement=False)) == [0, 1]


def test_a_loader_takes_either_kind_of_generator() -> None:
    for make in (lambda: ot.Generator().manual_seed(3), lambda: random.Random(3)):
        orders = []
        for _ in range(2):
            loader = data.DataLoader(
                NUMBERS, batch_size=4, shuffle=True, generator=make(), pin_memory=True
            )
            orders.append([batch.tolist() for batch in loader])
        assert orders[0] == orders[1]
