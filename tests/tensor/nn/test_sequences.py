"""Sequences of different lengths, padded and packed, and recurrent layers on them, against
PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from opscope import tensor as ot
from opscope.tensor import nn
from opscope.tensor.nn.utils import rnn
from tests.tensor.nn import twins
from tests.tensor.nn.twins import both

their_rnn = torch.nn.utils.rnn
RANDOM = np.random.default_rng(0)


def assert_close(own: Any, their: Any) -> None:
    twins.assert_close(own.detach(), their.detach())


def drawn(*sizes: int) -> Any:
    return RANDOM.normal(size=sizes).astype(np.float32)


def assert_packed(own: Any, their: Any) -> None:
    assert_close(own.data, their.data)
    assert own.batch_sizes.tolist() == their.batch_sizes.tolist()
    for name in ("sorted_indices", "unsorted_indices"):
        indices, expected = getattr(own, name), getattr(their, name)
        assert (indices is None) == (expected is None)
        assert indices is None or indices.tolist() == expected.tolist()


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize(("lengths", "is_sorted"), [([5, 3, 3, 1], True), ([2, 5, 1, 4], False)])
def test_sequences_are_packed_and_padded(
    lengths: list[int], is_sorted: bool, batch_first: bool
) -> None:
    own, their = both(drawn(*((4, 5, 3) if batch_first else (5, 4, 3))))
    packed = rnn.pack_padded_sequence(own, lengths, batch_first, is_sorted)
    twin = their_rnn.pack_padded_sequence(their, torch.tensor(lengths), batch_first, is_sorted)
    assert_packed(packed, twin)
    more: list[dict[str, Any]] = [{}, {"padding_value": -1.0, "total_length": 7}]
    found = [rnn.pad_packed_sequence(packed, batch_first, **options) for options in more]
    wanted = [their_rnn.pad_packed_sequence(twin, batch_first, **options) for options in more]
    for (padded, sizes), (expected, numbers) in zip(found, wanted, strict=True):
        assert_close(padded, expected)
        assert sizes.tolist() == numbers.tolist() == lengths
    (padded, _), (expected, _) = found[-1], wanted[-1]
    weight = drawn(*padded.shape)
    (padded * ot.tensor(weight)).sum().backward()
    (expected * torch.tensor(weight)).sum().backward()
    assert_close(own.grad, their.grad)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("batch_first", [False, True])
def test_lists_of_sequences(batch_first: bool, side: str) -> None:
    arrays = [drawn(4, 2), drawn(4, 2), drawn(1, 2)]
    own, their = [ot.tensor(each) for each in arrays], [torch.tensor(each) for each in arrays]
    padded = rnn.pad_sequence(own, batch_first, 0.5, side)
    assert_close(padded, their_rnn.pad_sequence(their, batch_first, 0.5, side))
    packed = rnn.pack_sequence(own)
    assert_packed(packed, their_rnn.pack_sequence(their))
    assert_packed(rnn.pack_sequence(own[::-1], False), their_rnn.pack_sequence(their[::-1], False))
    for each, twin in zip(rnn.unpack_sequence(packed), their, strict=True):
        assert_close(each, twin)


LAYERS = [
    lambda lib: lib.LSTM(3, 4),
    lambda lib: lib.LSTM(3, 4, num_layers=2, bidirectional=True, batch_first=True),
    lambda lib: lib.GRU(3, 4, num_layers=2, bidirectional=True),
    lambda lib: lib.RNN(3, 4),
]


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize(("lengths", "is_sorted"), [([5, 3, 3, 1], True), ([2, 5, 1, 5], False)])
@pytest.mark.parametrize("make", LAYERS)
def test_recurrent_layers_take_packed_sequences(
    make: Any, lengths: list[int], is_sorted: bool, given: bool
) -> None:
    layer, twin = make(nn), make(torch.nn)
    layer.load_state_dict(twin.state_dict())
    own, their = both(drawn(5, 4, 3))
    hidden: list[Any] = [None, None]
    if given:
        arrays = [drawn(twin.num_layers * (1 + twin.bidirectional), 4, 4) for _ in range(2)]
        is_pair = isinstance(layer, nn.LSTM)
        for place, lib in enumerate((ot, torch)):
            made = tuple(lib.tensor(each) for each in arrays)
            hidden[place] = made if is_pair else made[0]
    packed = rnn.pack_padded_sequence(own, lengths, enforce_sorted=is_sorted)
    output, final = layer(packed, hidden[0])
    their_packed = their_rnn.pack_padded_sequence(
        their, torch.tensor(lengths), enforce_sorted=is_sorted
    )
    expected, their_final = twin(their_packed, hidden[1])
    assert_packed(output, expected)
    finals = final if isinstance(final, tuple) else (final,)
    their_finals = their_final if isinstance(their_final, tuple) else (their_final,)
    for each, other in zip(finals, their_finals, strict=True):
        assert_close(each, other)
    (output.data.square().sum() + finals[0].sum()).backward()
    (expected.data.square().sum() + their_finals[0].sum()).backward()
    assert_close(own.grad, their.grad)
    for name, parameter in twin.named_parameters():
        assert_close(dict(layer.named_parameters())[name].grad, parameter.grad)


def test_lengths_that_do_not_fit_are_refused() -> None:
    input = ot.zeros(5, 2, 3)
    for lengths in ([3], [6, 1], [3, 0]):
        with pytest.raises(RuntimeError, match="expected 2 numbers from 1 to 5"):
            rnn.pack_padded_sequence(input, lengths)
    with pytest.raises(RuntimeError, match="enforce_sorted=False"):
        rnn.pack_padded_sequence(input, [1, 3])
    packed = rnn.pack_padded_sequence(input, [3, 1])
    with pytest.raises(ValueError, match="total_length is 2, a sequence has 3 steps"):
        rnn.pad_packed_sequence(packed, total_length=2)
    with pytest.raises(ValueError, match="padding_side is 'top'"):
        rnn.pad_sequence([input], padding_side="top")
