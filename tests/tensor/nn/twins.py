"""The same module of opscope and of PyTorch, with the same weights, on the same inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from opscope import tensor as ot
from opscope.tensor import nn


def both(array: Any) -> tuple[Any, Any]:
    """An array as a leaf of both libraries; other objects stay unchanged."""
    if not isinstance(array, np.ndarray):
        return array, array
    grad = array.dtype.kind == "f"
    return ot.tensor(array, requires_grad=grad), torch.tensor(array, requires_grad=grad)


def assert_twins(own: nn.Module, their: Any, *arrays: Any, **options: Any) -> None:
    """PyTorch's weights load under their names; outputs, all gradients and buffers are equal."""
    own.load_state_dict(their.state_dict())
    assert list(own.state_dict()) == list(their.state_dict())
    inputs = [both(array) for array in arrays]
    keywords = {name: both(value) for name, value in options.items()}
    found = own(*(pair[0] for pair in inputs), **{k: pair[0] for k, pair in keywords.items()})
    expected = their(*(pair[1] for pair in inputs), **{k: pair[1] for k, pair in keywords.items()})
    if isinstance(expected, tuple):
        assert (found[1] is None) == (expected[1] is None)
        if expected[1] is not None:
            assert_close(found[1].detach(), expected[1].detach())
        found, expected = found[0], expected[0]
    assert_close(found.detach(), expected.detach())
    if not expected.requires_grad:
        return
    weights = np.random.default_rng(5).normal(size=tuple(expected.shape)).astype(np.float32)
    (found * ot.tensor(weights)).sum().backward()
    (expected * torch.tensor(weights)).sum().backward()
    for own_leaf, their_leaf in zip(own.parameters(), their.parameters(), strict=True):
        assert_close(own_leaf.grad, their_leaf.grad)
    for own_leaf, their_leaf in inputs:
        if getattr(their_leaf, "requires_grad", False):
            assert_close(own_leaf.grad, their_leaf.grad)
    for own_buffer, their_buffer in zip(own.buffers(), their.buffers(), strict=True):
        assert_close(own_buffer, their_buffer)


def assert_close(own: Any, their: Any) -> None:
    np.testing.assert_allclose(own.numpy(), their.numpy(), atol=1e-5, rtol=1e-5)
