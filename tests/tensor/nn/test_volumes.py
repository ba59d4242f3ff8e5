"""Convolutions and pools of volumes: weights, names, results and gradients are PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from opscope import tensor as ot
from opscope.tensor import nn
from opscope.tensor.nn import functional
from tests.examples import examples

OWN: Any = functional
THEIRS: Any = torch.nn.functional

MODULES = [
    lambda kinds: kinds.Conv3d(4, 6, 3),
    lambda kinds: kinds.Conv3d(4, 6, (3, 1, 2), (2, 1, 1), (1, 0, 1), (1, 2, 1), groups=2),
    lambda kinds: kinds.Conv3d(4, 6, 3, padding="same", bias=False),
    lambda kinds: kinds.Conv3d(4, 2, 3, padding=1, padding_mode="reflect"),
    lambda kinds: kinds.ConvTranspose3d(4, 6, 3, 2, 1, 1, groups=2),
    lambda kinds: kinds.MaxPool3d(2),
    lambda kinds: kinds.AvgPool3d((2, 3, 2), 2, (1, 1, 0), ceil_mode=True, count_include_pad=False),
    lambda kinds: kinds.AdaptiveAvgPool3d((1, 2, 3)),
]


def compare(own: Any, theirs: Any, arrays: list[Any]) -> None:
    """Calls both with the arrays; compares results and gradients of all arguments."""
    ours = [ot.from_numpy(array.copy()).requires_grad_() for array in arrays]
    peers = [torch.from_numpy(array.copy()).requires_grad_() for array in arrays]
    is_, wanted = own(*ours), theirs(*peers)
    assert tuple(is_.shape) == tuple(wanted.shape)
    is_.square().sum().backward()
    wanted.square().sum().backward()
    np.testing.assert_allclose(is_.detach().numpy(), wanted.detach().numpy(), atol=1e-10)
    for one, other in zip(ours, peers, strict=True):
        assert one.grad is not None and other.grad is not None
        np.testing.assert_allclose(one.grad.numpy(), other.grad.numpy(), atol=1e-9)


@pytest.mark.parametrize("make", MODULES)
def test_module_reads_and_computes_as_pytorchs_from_its_weights(make: Any) -> None:
    own, theirs = make(nn).double(), make(torch.nn).double()
    assert repr(own) == repr(theirs)
    own.load_state_dict(theirs.state_dict())
    images = np.random.default_rng(0).normal(size=(2, 4, 5, 6, 4))
    compare(own, theirs, [images])
    compare(own, theirs, [images[0]])


TRIPLES = st.tuples(*[st.integers(1, 2)] * 3)


@examples(5)
@given(
    TRIPLES, TRIPLES, TRIPLES, TRIPLES, TRIPLES, st.integers(1, 2), st.integers(1, 2), st.booleans()
)
def test_convolutions_of_any_sizes_are_pytorchs(
    size: Any, steps: Any, more: Any, rates: Any, extra: Any, groups: int, each: int, batch: bool
) -> None:
    random = np.random.default_rng(0)
    edges = tuple(number - 1 for number in more)
    shape = [4 + number for number in extra]
    x = random.normal(size=([2] if batch else []) + [groups, *shape])
    weight = random.normal(size=(groups * each, 1, *size))
    bias = random.normal(size=groups * each)
    settings = (steps, edges, rates, groups)
    compare(
        lambda *given: OWN.conv3d(*given, *settings),
        lambda *given: THEIRS.conv3d(*given, *settings),
        [x, weight, bias],
    )
    weight = random.normal(size=(groups, each, *size))
    beyond = tuple(max(s, r) - 1 for s, r in zip(steps, rates, strict=True))
    turned = (steps, edges, beyond, groups, rates)
    compare(
        lambda *given: OWN.conv_transpose3d(*given, *turned),
        lambda *given: THEIRS.conv_transpose3d(*given, *turned),
        [x, weight, bias],
    )


def test_gradients_of_conv3d_are_the_differences_of_its_results() -> None:
    ot.manual_seed(3)
    x = ot.randn(1, 2, 4, 3, 3, dtype=ot.float64, requires_grad=True)
    w = ot.randn(2, 2, 2, 2, 2, dtype=ot.float64, requires_grad=True)
    functional.conv3d(x, w, padding=1).square().sum().backward()
    for tensor, other in ((x, w), (w, x)):
        for place in ((0, 0, 0, 0, 0), (0, 1, 1, 1, 1)):
            values = []
            for step in (1e-6, -1e-6):
                moved = tensor.detach().clone()
                moved[place] += step
                pair = (moved, other) if tensor is x else (other, moved)
                values.append(functional.conv3d(*pair, padding=1).square().sum().item())
            assert tensor.grad is not None
            difference = (values[0] - values[1]) / 2e-6
            assert difference == pytest.approx(tensor.grad[place].item(), rel=1e-5)


def test_output_padding_of_the_stride_or_more_needs_dilation() -> None:
    x = np.random.default_rng(1).normal(size=(1, 2, 3, 4))
    weight = np.random.default_rng(2).normal(size=(2, 1, 2, 2))
    compare(
        lambda *given: OWN.conv_transpose2d(*given, None, 1, 1, 1, 1, 2),
        lambda *given: THEIRS.conv_transpose2d(*given, None, 1, 1, 1, 1, 2),
        [x, weight],
    )


def test_errors_say_which_dimensions_are_wrong() -> None:
    with pytest.raises(RuntimeError, match="volumes have 4 or 5 dimensions, not 3"):
        nn.MaxPool3d(2)(ot.ones(2, 3, 4))
    with pytest.raises(RuntimeError, match="the weight has 5 dimensions, not 4"):
        functional.conv3d(ot.ones(1, 1, 2, 2, 2), ot.ones(1, 1, 2, 2))
    with pytest.raises(RuntimeError, match="depth 3 does not fit into depth 2"):
        functional.conv3d(ot.ones(1, 1, 2, 4, 4), ot.ones(1, 1, 3, 1, 1))
    with pytest.raises(RuntimeError, match="return_indices is not there"):
        functional.max_pool3d(ot.ones(1, 2, 2, 2), 2, return_indices=True)
