"""Convolution and pooling modules: weights, names and results are PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from opscope import tensor as ot
from opscope.tensor import nn

MODULES = [
    lambda kinds: kinds.Conv2d(4, 6, 3),
    lambda kinds: kinds.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2)),
    lambda kinds: kinds.Conv2d(4, 6, 3, padding=1, groups=2, bias=False),
    lambda kinds: kinds.MaxPool2d(2),
    lambda kinds: kinds.MaxPool2d(3, stride=2, padding=1, ceil_mode=True),
    lambda kinds: kinds.AvgPool2d((2, 3), stride=1),
    lambda kinds: kinds.AvgPool2d(3, 2, 1, True, False),
    lambda kinds: kinds.AdaptiveAvgPool2d(2),
]


@pytest.mark.parametrize("make", MODULES)
def test_module_reads_and_computes_as_pytorchs_from_its_weights(make: Any) -> None:
    own, theirs = make(nn), make(torch.nn)
    assert repr(own) == repr(theirs)
    own.load_state_dict(theirs.state_dict())
    array = np.random.default_rng(0).normal(size=(2, 4, 8, 9)).astype(np.float32)
    expected = theirs(torch.from_numpy(array)).detach().numpy()
    np.testing.assert_allclose(own(ot.tensor(array)).detach().numpy(), expected, atol=1e-5)


def test_weights_begin_uniform_within_one_over_the_root_of_a_kernels_inputs() -> None:
    ot.manual_seed(0)
    module = nn.Conv2d(8, 64, 5, groups=2)
    assert module.weight.shape == (64, 4, 5, 5)
    for parameter in (module.weight, module.bias):
        assert parameter is not None
        values = parameter.detach().numpy()
        assert np.abs(values).max() <= 0.1
        assert np.abs(values).max() > 0.09
        assert abs(values.mean()) < 0.02


def test_groups_that_do_not_divide_the_channels_are_refused() -> None:
    with pytest.raises(ValueError, match="groups of 2 must divide in_channels, 4, and out_chan"):
        nn.Conv2d(4, 5, 3, groups=2)
