"""Each module computes what PyTorch's module of that name does, from the same weights, within
1e-5."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from opscope import tensor as ot
from opscope.tensor import nn
from tests.tensor.nn.twins import assert_close, assert_twins

RANDOM = np.random.default_rng(0)


def floats(*shape: int) -> Any:
    return RANDOM.normal(size=shape).astype(np.float32)


Make = Callable[[Any], Any]

LAYERS: list[tuple[Make, Any]] = [
    (lambda lib: lib.Linear(4, 3), floats(2, 5, 4)),
    (lambda lib: lib.Linear(4, 3, bias=False), floats(4)),
    (lambda lib: lib.Embedding(7, 3), RANDOM.integers(0, 7, (2, 4))),
    (lambda lib: lib.LayerNorm(4), floats(2, 5, 4)),
    (lambda lib: lib.LayerNorm((5, 4), bias=False), floats(2, 5, 4)),
    (lambda lib: lib.LayerNorm(4, elementwise_affine=False), floats(2, 5, 4)),
    (lambda lib: lib.BatchNorm2d(3), floats(4, 3, 5, 5)),
    (lambda lib: lib.BatchNorm2d(3, momentum=None, affine=False), floats(4, 3, 5, 5)),
    (lambda lib: lib.BatchNorm2d(3).eval(), floats(4, 3, 5, 5)),
    (lambda lib: lib.BatchNorm1d(3, track_running_stats=False).eval(), floats(4, 3)),
    (lambda lib: lib.ReLU(), floats(3, 4)),
    (lambda lib: lib.GELU(), floats(3, 4)),
    (lambda lib: lib.GELU("tanh"), floats(3, 4)),
    (lambda lib: lib.Tanh(), floats(3, 4)),
    (lambda lib: lib.Sigmoid(), floats(3, 4)),
    (lambda lib: lib.Softmax(1), floats(3, 4)),
    (lambda lib: lib.LogSoftmax(0), floats(3, 4)),
    (lambda lib: lib.Dropout(0.5).eval(), floats(3, 4)),
    (lambda lib: lib.Identity(), floats(3, 4)),
    (lambda lib: lib.Flatten(), floats(3, 4, 2)),
    (lambda lib: lib.Flatten(0, -2), floats(3, 4, 2)),
    (lambda lib: lib.Sequential(lib.Linear(4, 3), lib.Tanh(), lib.Linear(3, 2)), floats(2, 4)),
]


@pytest.mark.parametrize(("make", "array"), LAYERS)
def test_outputs_and_gradients_are_pytorchs(make: Make, array: Any) -> None:
    assert_twins(make(nn), make(torch.nn), array)


@pytest.mark.parametrize(("make", "array"), LAYERS)
def test_repr_is_pytorchs(make: Make, array: Any) -> None:
    assert repr(make(nn)) == repr(make(torch.nn))


@pytest.mark.parametrize("options", [{}, {"reduction": "sum"}, {"reduction": "none"}])
@pytest.mark.parametrize("name", ["MSELoss", "L1Loss"])
def test_regression_losses_are_pytorchs(name: str, options: Any) -> None:
    input, target = floats(6, 4), floats(6, 4)
    own = getattr(nn, name)(**options)(ot.tensor(input), ot.tensor(target))
    their = getattr(torch.nn, name)(**options)(torch.tensor(input), torch.tensor(target))
    assert_close(own, their)


@pytest.mark.parametrize(
    "options",
    [{}, {"reduction": "sum"}, {"reduction": "none"}, {"ignore_index": 1}],
)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["CrossEntropyLoss", "NLLLoss"])
def test_classification_losses_are_pytorchs(name: str, weighted: bool, options: Any) -> None:
    weight = np.abs(floats(4)) if weighted else None
    input, target = floats(6, 4, 2), RANDOM.integers(0, 4, (6, 2))

    def run(lib: Any, tensor: Any) -> Any:
        loss = getattr(lib, name)(weight if weight is None else tensor(weight), **options)
        assert list(loss.state_dict()) == ["weight"] * weighted
        return loss(tensor(input), tensor(target))

    assert_close(run(nn, ot.tensor), run(torch.nn, torch.tensor))


def test_label_smoothing_is_pytorchs() -> None:
    input, target = floats(6, 4), RANDOM.integers(0, 4, (6,))
    own = nn.CrossEntropyLoss(label_smoothing=0.1)(ot.tensor(input), ot.tensor(target))
    their = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
    assert_close(own, their(torch.tensor(input), torch.tensor(target)))


@pytest.mark.parametrize(
    "make",
    [
        lambda lib: lib.Linear(40, 90),
        lambda lib: lib.Embedding(60, 70),
        lambda lib: lib.MultiheadAttention(32, 4),
        lambda lib: lib.LayerNorm(9),
        lambda lib: lib.BatchNorm2d(9),
    ],
)
def test_weights_begin_as_pytorchs(make: Make) -> None:
    ot.manual_seed(0)
    torch.manual_seed(0)
    own, their = make(nn), make(torch.nn)
    for name, value in their.state_dict().items():
        mine = own.state_dict()[name].numpy().astype(np.float64)
        expected = value.numpy().astype(np.float64)
        spread = expected.std()
        assert mine.std() == pytest.approx(spread, rel=0.2), name
        assert mine.mean() == pytest.approx(expected.mean(), abs=0.15 * spread), name
        # Within the same bounds, if there are any.
        assert abs(mine).max() <= abs(expected).max() * (1.35 if "Embedding" in repr(own) else 1.1)


def test_dropout_keeps_the_mean_while_training() -> None:
    ot.manual_seed(0)
    out = nn.Dropout(0.25)(ot.ones((10000,))).numpy()
    assert set(np.unique(out)) == {np.float32(0), np.float32(1 / 0.75)}
    assert out.mean() == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: nn.Dropout(1.5), ValueError, "1.5"),
        (lambda: nn.GELU("fast"), ValueError, "fast"),
        (lambda: nn.MSELoss("all"), ValueError, "reduction"),
        (lambda: nn.MultiheadAttention(5, 2), ValueError, "5 is no multiple of 2"),
        (lambda: nn.TransformerEncoderLayer(4, 2, activation="swish"), ValueError, "swish"),
        (lambda: nn.BatchNorm2d(3)(ot.zeros((2, 3))), ValueError, r"not 2: shape \(2, 3\)"),
        (lambda: nn.Flatten(3)(ot.zeros((2, 3))), IndexError, "2 dimensions"),
        (lambda: nn.Flatten(1, 0)(ot.zeros((2, 3))), ValueError, "behind"),
        (lambda: nn.Module()(1), NotImplementedError, "no forward"),
    ],
)
def test_bad_options_are_refused_with_the_reason(
    make: Callable[[], Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        make()
