"""Modules beyond those of small networks: outputs, gradients, state and repr are PyTorch's."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from opscope import tensor as ot
from opscope.tensor import nn
from tests.tensor.nn.twins import assert_close, assert_twins

RANDOM = np.random.default_rng(7)


def floats(*shape: int) -> Any:
    return RANDOM.normal(size=shape).astype(np.float32)


Make = Callable[[Any], Any]
X, LINES, IMAGES = floats(3, 4), floats(2, 4, 7), floats(2, 4, 6, 5)
LAYERS: list[tuple[Make, Any]] = [
    *(
        (lambda lib, name=name: getattr(lib, name)(), X)
        for name in (
            "ReLU6 LeakyReLU ELU SELU CELU SiLU Mish Hardtanh Hardsigmoid Hardswish Hardshrink "
            "Softshrink Tanhshrink Softplus Softsign LogSigmoid GLU PReLU"
        ).split()
    ),
    (lambda lib: lib.LeakyReLU(0.2, inplace=False), X),
    (lambda lib: lib.PReLU(4), IMAGES),
    (lambda lib: lib.Softmin(dim=1), X),
    (lambda lib: lib.Threshold(0.1, 2.0), X),
    (lambda lib: lib.Unflatten(1, (2, 2)), X),
    (lambda lib: lib.Dropout2d(0.3).eval(), IMAGES),
    (lambda lib: lib.Conv1d(4, 6, 3, stride=2, padding=1, groups=2), LINES),
    (lambda lib: lib.Conv1d(4, 6, 3, padding="same", padding_mode="circular"), LINES),
    (lambda lib: lib.Conv2d(4, 3, (3, 5), padding="same"), IMAGES),
    (lambda lib: lib.Conv2d(4, 3, 3, padding=(1, 2), padding_mode="reflect", bias=False), IMAGES),
    (
        lambda lib: lib.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2),
        IMAGES,
    ),
    (lambda lib: lib.ConvTranspose1d(4, 3, 4, stride=2, dilation=2, bias=False), LINES),
    (lambda lib: lib.GroupNorm(2, 4), IMAGES),
    (lambda lib: lib.GroupNorm(4, 4, affine=False), LINES),
    (lambda lib: lib.InstanceNorm2d(4), IMAGES),
    (lambda lib: lib.InstanceNorm1d(4, affine=True, track_running_stats=True), LINES),
    (lambda lib: lib.BatchNorm3d(4), floats(2, 4, 3, 2, 2)),
    (lambda lib: lib.RMSNorm(5), IMAGES),
    (lambda lib: lib.LocalResponseNorm(3), IMAGES),
    (lambda lib: lib.MaxPool1d(3, stride=2, padding=1), LINES),
    (lambda lib: lib.AvgPool1d(3), LINES),
    (lambda lib: lib.AdaptiveAvgPool1d(3), LINES),
    (lambda lib: lib.AdaptiveMaxPool2d((2, 3)), IMAGES),
    (lambda lib: lib.AdaptiveAvgPool2d((None, 2)), IMAGES),
    (lambda lib: lib.Upsample(scale_factor=2), IMAGES),
    (lambda lib: lib.Upsample(size=(4, 9), mode="bilinear", align_corners=True), IMAGES),
    (lambda lib: lib.PixelShuffle(2), IMAGES),
    (lambda lib: lib.ZeroPad2d((1, 2, 0, 1)), IMAGES),
    (lambda lib: lib.ReflectionPad2d(2), IMAGES),
    (lambda lib: lib.ReplicationPad1d(2), LINES),
    (lambda lib: lib.ConstantPad1d(1, 2.5), LINES),
    (lambda lib: lib.Unfold(2, padding=1), IMAGES),
    (lambda lib: lib.Embedding(7, 3, padding_idx=2), RANDOM.integers(0, 7, (2, 4))),
    (lambda lib: lib.Sequential(OrderedDict(a=lib.Linear(4, 3), b=lib.ReLU())), X),
    (lambda lib: lib.Sequential(lib.Linear(4, 3), lib.ReLU()).append(lib.Linear(3, 2)), X),
]


@pytest.mark.parametrize(("make", "array"), LAYERS)
def test_outputs_and_gradients_are_pytorchs(make: Make, array: Any) -> None:
    assert_twins(make(nn), make(torch.nn), array)


@pytest.mark.parametrize(("make", "array"), LAYERS)
def test_repr_is_pytorchs(make: Make, array: Any) -> None:
    assert repr(make(nn)) == repr(make(torch.nn))


RECURRENT: list[Make] = [
    lambda lib: lib.LSTM(4, 5),
    lambda lib: lib.LSTM(4, 5, num_layers=2, bidirectional=True, batch_first=True),
    lambda lib: lib.GRU(4, 5, num_layers=2, bias=False),
    lambda lib: lib.RNN(4, 5, nonlinearity="relu", bidirectional=True),
    lambda lib: lib.RNN(4, 5),
]


@pytest.mark.parametrize("make", RECURRENT)
def test_recurrent_layers_are_pytorchs(make: Make) -> None:
    own, their = make(nn), make(torch.nn)
    own.load_state_dict(their.state_dict())
    assert list(own.state_dict()) == list(their.state_dict())
    assert repr(own) == repr(their)
    array = floats(3, 6, 4)
    results = []
    for lib, module in ((ot, own), (torch, their)):
        input = lib.tensor(array, requires_grad=True)
        output, end = module(input)
        last: Any = end if isinstance(end, tuple) else (end,)
        again, _ = module(
            input[:, 0], tuple(each[:, 0] for each in last) if len(last) > 1 else last[0][:, 0]
        )
        loss = (output * output).sum() + sum((each * 2).sum() for each in last) + again.sum()
        loss.backward()
        results.append((output, *last, again, input.grad, *(p.grad for p in module.parameters())))
    for found, expected in zip(*results, strict=True):
        np.testing.assert_allclose(
            found.detach().numpy(), expected.detach().numpy(), atol=5e-5, rtol=1e-4
        )


@pytest.mark.parametrize("name", ["LSTMCell", "GRUCell"])
def test_cells_are_pytorchs(name: str) -> None:
    own, their = getattr(nn, name)(4, 5), getattr(torch.nn, name)(4, 5)
    own.load_state_dict(their.state_dict())
    assert repr(own) == repr(their)
    found, expected = own(ot.tensor(X)), their(torch.tensor(X))
    for one, other in zip(
        found if isinstance(found, tuple) else (found,),
        expected if isinstance(expected, tuple) else (expected,),
        strict=True,
    ):
        assert_close(one.detach(), other.detach())


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_transformers_are_pytorchs(norm_first: bool, activation: str) -> None:
    def make(lib: Any) -> Any:
        return lib.Transformer(
            8, 2, 2, 1, 16, 0.0, activation, batch_first=True, norm_first=norm_first
        )

    own, their = make(nn), make(torch.nn)
    own.load_state_dict(their.state_dict())
    source, target = floats(2, 5, 8), floats(2, 3, 8)
    mask = nn.Transformer.generate_square_subsequent_mask(3)
    assert_close(mask, torch.nn.Transformer.generate_square_subsequent_mask(3))
    padding = np.array([[False] * 5, [False] * 3 + [True] * 2])
    found = own(
        ot.tensor(source),
        ot.tensor(target),
        tgt_mask=mask,
        src_key_padding_mask=ot.tensor(padding),
        memory_key_padding_mask=ot.tensor(padding),
    )
    expected = their(
        torch.tensor(source),
        torch.tensor(target),
        tgt_mask=torch.tensor(mask.numpy()),
        src_key_padding_mask=torch.tensor(padding),
        memory_key_padding_mask=torch.tensor(padding),
    )
    assert_close(found.detach(), expected.detach())


LOSSES: list[tuple[Make, Any]] = [
    (lambda lib: lib.BCELoss(), (np.abs(np.tanh(X)), np.abs(np.tanh(X.T.reshape(3, 4))))),
    (lambda lib: lib.BCEWithLogitsLoss(reduction="sum"), (X, np.abs(np.tanh(X)))),
    (lambda lib: lib.SmoothL1Loss(beta=0.5), (X, X[::-1].copy())),
    (lambda lib: lib.HuberLoss(delta=0.5), (X, X[::-1].copy())),
    (lambda lib: lib.KLDivLoss(reduction="batchmean"), (X, np.abs(X))),
    (lambda lib: lib.MarginRankingLoss(0.1), (X[0], X[1], np.array([1, -1, 1, 1]))),
    (lambda lib: lib.CosineEmbeddingLoss(), (X, X[::-1].copy(), np.array([1, -1, 1]))),
    (lambda lib: lib.TripletMarginLoss(), (X, X[::-1].copy(), X * 2)),
    (lambda lib: lib.GaussianNLLLoss(), (X, X[::-1].copy(), np.abs(X))),
    (lambda lib: lib.PoissonNLLLoss(), (X, np.abs(X))),
    (lambda lib: lib.CosineSimilarity(), (X, X[::-1].copy())),
    (lambda lib: lib.PairwiseDistance(), (X, X[::-1].copy())),
]


@pytest.mark.parametrize(("make", "arrays"), LOSSES)
def test_losses_are_pytorchs(make: Make, arrays: Any) -> None:
    found = make(nn)(*map(ot.tensor, arrays))
    assert_close(found, make(torch.nn)(*map(torch.tensor, arrays)))


def test_pos_weight_is_a_buffer_and_scales_positive_targets() -> None:
    weight = np.array([1.0, 2.0, 3.0, 4.0], np.float32)
    own = nn.BCEWithLogitsLoss(pos_weight=ot.tensor(weight))
    their = torch.nn.BCEWithLogitsLoss(pos_weight=torch.tensor(weight))
    assert list(own.state_dict()) == list(their.state_dict()) == ["pos_weight"]
    target = np.abs(np.tanh(X))
    assert_close(own(ot.tensor(X), ot.tensor(target)), their(torch.tensor(X), torch.tensor(target)))
