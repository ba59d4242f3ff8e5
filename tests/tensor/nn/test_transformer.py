"""Attention and a small transformer: PyTorch's outputs, gradients, and losses step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from opscope import tensor as ot
from opscope.tensor import nn, optim
from tests.tensor.nn.twins import assert_twins

RANDOM = np.random.default_rng(0)


def floats(*shape: int) -> Any:
    return RANDOM.normal(size=shape).astype(np.float32)


PADDING = np.zeros((3, 6), np.bool_)
PADDING[0, 4:] = True
LATER = np.triu(np.ones((5, 6), np.bool_), 1)


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"need_weights": False},
        {"key_padding_mask": PADDING},
        {"key_padding_mask": PADDING, "need_weights": False},
        {"attn_mask": floats(5, 6), "need_weights": False},
        {"attn_mask": LATER, "need_weights": False},
        {"attn_mask": floats(6, 5, 6), "average_attn_weights": False},
    ],
)
def test_attention_is_pytorchs(batch_first: bool, options: Any) -> None:
    query, key = (floats(3, 5, 8), floats(3, 6, 8))
    if not batch_first:
        query, key = query.swapaxes(0, 1).copy(), key.swapaxes(0, 1).copy()
    own, their = (lib.MultiheadAttention(8, 2, batch_first=batch_first) for lib in (nn, torch.nn))
    assert_twins(own, their, query, key, floats(*key.shape), **options)


def test_attention_of_one_sample_is_pytorchs() -> None:
    own, their = (lib.MultiheadAttention(8, 2, bias=False) for lib in (nn, torch.nn))
    assert_twins(own, their, floats(5, 8), floats(6, 8), floats(6, 8), attn_mask=LATER)


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_encoder_layer_is_pytorchs(norm_first: bool, batch_first: bool, activation: str) -> None:
    own, their = (
        lib.TransformerEncoderLayer(
            8, 2, 16, 0.0, activation, batch_first=batch_first, norm_first=norm_first
        )
        for lib in (nn, torch.nn)
    )
    assert_twins(own, their, floats(5, 3, 8))
    length = 3 if batch_first else 5
    assert_twins(own, their, floats(5, 3, 8), src_mask=LATER[:length, :length])


def test_is_causal_alone_hides_later_keys() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0)
    input = ot.tensor(floats(5, 3, 8))
    masked = layer(input, ot.tensor(LATER[:5, :5]))
    np.testing.assert_array_equal(
        layer(input, is_causal=True).detach().numpy(), masked.detach().numpy()
    )


SYMBOLS, LENGTH, WIDTH = 8, 12, 16


def language_model(lib: Any, base: Any, tensor: Any) -> Any:
    """Two causal layers that predict the next symbol."""

    class Model(base):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.symbols = lib.Embedding(SYMBOLS, WIDTH)
            self.places = lib.Embedding(LENGTH, WIDTH)
            self.layers = lib.ModuleList(
                [lib.TransformerEncoderLayer(WIDTH, 2, 32, 0.0, batch_first=True) for _ in "12"]
            )
            self.head = lib.Linear(WIDTH, SYMBOLS)

        def forward(self, text: Any) -> Any:
            hidden = self.symbols(text) + self.places(tensor(np.arange(LENGTH)))
            later = tensor(np.triu(np.ones((LENGTH, LENGTH), np.bool_), 1))
            for layer in self.layers:
                hidden = layer(hidden, src_mask=later)
            return self.head(hidden)

    return Model()


def test_a_small_transformer_trains_as_pytorchs_step_by_step() -> None:
    own = language_model(nn, nn.Module, ot.tensor)
    torch.manual_seed(0)
    their = language_model(torch.nn, torch.nn.Module, torch.tensor)
    own.load_state_dict(their.state_dict())
    own_optimizer = optim.AdamW(own.parameters(), lr=3e-3)
    their_optimizer = torch.optim.AdamW(their.parameters(), lr=3e-3)
    random = np.random.default_rng(1)
    losses = []
    for _ in range(60):
        # Counts from any symbol, by one or by three: two symbols determine the next.
        first, by = random.integers(0, SYMBOLS, (16, 1)), random.choice([1, 3], (16, 1))
        text = (first + by * np.arange(LENGTH + 1)) % SYMBOLS
        pair = []
        for model, optimizer, lib, tensor in (
            (own, own_optimizer, nn, ot.tensor),
            (their, their_optimizer, torch.nn, torch.tensor),
        ):
            scores = model(tensor(text[:, :-1].copy()))
            targets = tensor(text[:, 1:].reshape(-1).copy())
            loss = lib.CrossEntropyLoss()(scores.reshape((-1, SYMBOLS)), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            pair.append(loss.item())
        assert pair[0] == pytest.approx(pair[1], abs=1e-4)
        losses.append(pair[0])
    assert np.mean(losses[-5:]) < np.mean(losses[:5]) / 2
