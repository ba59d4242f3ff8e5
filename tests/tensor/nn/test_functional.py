"""Functions of opscope.tensor.nn.functional: values and gradients are PyTorch's, within 1e-5."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as their_functions

from opscope import tensor as ot
from opscope.tensor.nn import functional as own_functions
from tests.tensor.nn.twins import assert_close, both

RANDOM = np.random.default_rng(1)


def floats(*shape: int) -> Any:
    return RANDOM.normal(size=shape).astype(np.float32)


X, Y = floats(3, 4), floats(3, 4)
PROBABILITIES = RANDOM.uniform(0.05, 0.95, (3, 4)).astype(np.float32)
TARGETS = RANDOM.uniform(0.05, 0.95, (3, 4)).astype(np.float32)
SIGNS = np.array([1, -1, 1])
IMAGES = floats(2, 4, 6, 5)
LINES = floats(2, 4, 7)
INDICES = RANDOM.integers(0, 7, (2, 4))

Run = Callable[..., Any]
CASES: dict[str, tuple[Any, ...]] = {}
for name in (
    "relu leaky_relu elu selu celu gelu silu mish softplus softsign logsigmoid hardtanh relu6 "
    "hardsigmoid hardswish hardshrink softshrink tanhshrink sigmoid tanh glu"
).split():
    CASES[name] = (lambda f, x, name=name: getattr(f, name)(x), X * 3)
    if (
        name
        in "relu leaky_relu elu selu celu silu mish hardtanh relu6 hardsigmoid hardswish".split()
    ):
        CASES[f"{name} in place"] = (
            lambda f, x, name=name: getattr(f, name)(x.clone(), inplace=True) * 1,
            X * 3,
        )
CASES |= {
    "gelu tanh": (lambda f, x: f.gelu(x, approximate="tanh"), X),
    "leaky_relu slope": (lambda f, x: f.leaky_relu(x, 0.2), X),
    "softplus beta": (lambda f, x: f.softplus(x, 2, 1), X),
    "threshold": (lambda f, x: f.threshold(x, 0.1, -2), X),
    "prelu": (lambda f, x, w: f.prelu(x, w), IMAGES, floats(4)),
    "softmax": (lambda f, x: f.softmax(x, dim=1), X),
    "softmin": (lambda f, x: f.softmin(x, dim=0), X),
    "log_softmax": (lambda f, x: f.log_softmax(x, -1), X),
    "dropout off": (lambda f, x: f.dropout(x, 0.5, training=False), X),
    "linear": (lambda f, x, w: f.linear(x, w), X, floats(2, 4)),
    "bilinear": (lambda f, x, y, w: f.bilinear(x, y, w), X, Y, floats(2, 4, 4)),
    "normalize": (lambda f, x: f.normalize(x), X),
    "normalize 1": (lambda f, x: f.normalize(x, p=1, dim=0), X),
    "cosine_similarity": (lambda f, x, y: f.cosine_similarity(x, y), X, Y),
    "pairwise_distance": (lambda f, x, y: f.pairwise_distance(x, y), X, Y),
    "embedding": (lambda f, w, i: f.embedding(i, w, padding_idx=2), floats(7, 3), INDICES),
    "batch_norm": (
        lambda f, x, m, v: f.batch_norm(x, m.detach() * 1, v.detach() ** 2, training=True),
        IMAGES,
        floats(4),
        floats(4),
    ),
    "layer_norm": (lambda f, x, w: f.layer_norm(x, (5,), w), IMAGES, floats(5)),
    "group_norm": (lambda f, x, w, b: f.group_norm(x, 2, w, b), IMAGES, floats(4), floats(4)),
    "instance_norm": (lambda f, x: f.instance_norm(x), IMAGES),
    "rms_norm": (lambda f, x, w: f.rms_norm(x, (5,), w), IMAGES, floats(5)),
    "local_response_norm": (lambda f, x: f.local_response_norm(x, 3), IMAGES),
    "conv1d": (lambda f, x, w, b: f.conv1d(x, w, b, 2, 1), LINES, floats(3, 4, 3), floats(3)),
    "conv1d same": (
        lambda f, x, w: f.conv1d(x, w, padding="same", dilation=2),
        LINES,
        floats(3, 4, 3),
    ),
    "conv2d": (
        lambda f, x, w: f.conv2d(x, w, stride=(2, 1), padding=1, groups=2),
        IMAGES,
        floats(6, 2, 3, 3),
    ),
    "conv2d same": (lambda f, x, w: f.conv2d(x, w, padding="same"), IMAGES, floats(2, 4, 3, 5)),
    "conv_transpose2d": (
        lambda f, x, w, b: f.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=1),
        IMAGES,
        floats(4, 3, 3, 3),
        floats(3),
    ),
    "conv_transpose1d": (
        lambda f, x, w: f.conv_transpose1d(x, w, stride=3, groups=2, dilation=2),
        LINES,
        floats(4, 3, 3),
    ),
    "unfold": (lambda f, x: f.unfold(x, (2, 3), dilation=(2, 1), padding=1, stride=2), IMAGES),
    "max_pool1d": (lambda f, x: f.max_pool1d(x, 3, 2, 1), LINES),
    "avg_pool1d": (lambda f, x: f.avg_pool1d(x, 3, 2, 1, count_include_pad=False), LINES),
    "max_pool2d": (lambda f, x: f.max_pool2d(x, 2, ceil_mode=True), IMAGES),
    "avg_pool2d": (lambda f, x: f.avg_pool2d(x, (2, 3)), IMAGES),
    "adaptive_avg_pool1d": (lambda f, x: f.adaptive_avg_pool1d(x, 3), LINES),
    "adaptive_max_pool1d": (lambda f, x: f.adaptive_max_pool1d(x, 3), LINES),
    "adaptive_max_pool2d": (lambda f, x: f.adaptive_max_pool2d(x, (4, 3)), IMAGES),
    "adaptive_avg_pool2d": (lambda f, x: f.adaptive_avg_pool2d(x, (None, 3)), IMAGES),
    "pixel_shuffle": (lambda f, x: f.pixel_shuffle(x, 2), IMAGES),
    "pixel_unshuffle": (lambda f, x: f.pixel_unshuffle(x[..., :4], 2), IMAGES),
    "scaled_dot_product_attention": (
        lambda f, x, y, z: f.scaled_dot_product_attention(x, y, z, is_causal=True),
        floats(2, 5, 4),
        floats(2, 5, 4),
        floats(2, 5, 4),
    ),
    "pad": (lambda f, x: f.pad(x, (1, 2, 0, 1), value=2.5), X),
    "pad cuts": (lambda f, x: f.pad(x, (-1, 1, 0, -1)), X),
    "one_hot": (lambda f, i: f.one_hot(i, 7), INDICES),
}
for mode in ("reflect", "replicate", "circular"):
    CASES[f"pad {mode}"] = (lambda f, x, mode=mode: f.pad(x, (1, 2, 2, 0), mode=mode), IMAGES)
for mode in ("nearest", "nearest-exact", "bilinear", "bicubic", "area"):
    CASES[f"interpolate {mode}"] = (
        lambda f, x, mode=mode: f.interpolate(x, size=(9, 3), mode=mode),
        IMAGES,
    )
    CASES[f"interpolate {mode} factor"] = (
        lambda f, x, mode=mode: f.interpolate(x, scale_factor=1.7, mode=mode),
        IMAGES,
    )
for mode in ("bilinear", "bicubic"):
    CASES[f"interpolate {mode} corners"] = (
        lambda f, x, mode=mode: f.interpolate(x, size=(9, 3), mode=mode, align_corners=True),
        IMAGES,
    )
CASES["interpolate linear"] = (lambda f, x: f.interpolate(x, scale_factor=2, mode="linear"), LINES)
for how in ("mean", "sum", "none"):
    CASES |= {
        f"smooth_l1_loss {how}": (
            lambda f, x, y, how=how: f.smooth_l1_loss(x, y, reduction=how, beta=0.5),
            X,
            Y,
        ),
        f"huber_loss {how}": (
            lambda f, x, y, how=how: f.huber_loss(x, y, reduction=how, delta=0.7),
            X,
            Y,
        ),
        f"binary_cross_entropy {how}": (
            lambda f, x, y, how=how: f.binary_cross_entropy(x, y, reduction=how),
            PROBABILITIES,
            TARGETS.astype(np.float64).astype(np.float32),
        ),
        f"bce with logits {how}": (
            lambda f, x, y, w, how=how: f.binary_cross_entropy_with_logits(
                x, y.detach(), pos_weight=w.detach(), weight=w.detach(), reduction=how
            ),
            X,
            TARGETS,
            np.abs(floats(4)),
        ),
        f"kl_div {how}": (lambda f, x, y, how=how: f.kl_div(x, y, reduction=how), X, PROBABILITIES),
        f"hinge_embedding_loss {how}": (
            lambda f, x, s, how=how: f.hinge_embedding_loss(x[:, 0], s, reduction=how),
            X,
            SIGNS,
        ),
        f"margin_ranking_loss {how}": (
            lambda f, x, y, s, how=how: f.margin_ranking_loss(
                x[:, 0], y[:, 0], s, margin=0.1, reduction=how
            ),
            X,
            Y,
            SIGNS,
        ),
        f"soft_margin_loss {how}": (
            lambda f, x, s, how=how: f.soft_margin_loss(x[:, 0], s, reduction=how),
            X,
            SIGNS,
        ),
        f"cosine_embedding_loss {how}": (
            lambda f, x, y, s, how=how: f.cosine_embedding_loss(x, y, s, 0.1, reduction=how),
            X,
            Y,
            SIGNS,
        ),
        f"triplet_margin_loss {how}": (
            lambda f, x, y, z, how=how: f.triplet_margin_loss(x, y, z, swap=True, reduction=how),
            X,
            Y,
            floats(3, 4),
        ),
        f"poisson_nll_loss {how}": (
            lambda f, x, y, how=how: f.poisson_nll_loss(x, y.detach(), full=True, reduction=how),
            X,
            PROBABILITIES * 5,
        ),
        f"gaussian_nll_loss {how}": (
            lambda f, x, y, v, how=how: f.gaussian_nll_loss(x, y, v, full=True, reduction=how),
            X,
            Y,
            PROBABILITIES,
        ),
        f"cross_entropy of probabilities {how}": (
            lambda f, x, y, how=how: f.cross_entropy(
                x, y.softmax(1).detach(), reduction=how, label_smoothing=0.1
            ),
            X,
            Y,
        ),
        f"cross_entropy {how}": (
            lambda f, x, i, how=how: f.cross_entropy(x, i, reduction=how, ignore_index=1),
            X,
            np.array([0, 1, 3]),
        ),
    }
CASES["kl_div batchmean"] = (
    lambda f, x, y: f.kl_div(x, y, reduction="batchmean", log_target=True),
    X,
    Y,
)


@pytest.mark.filterwarnings("ignore:reduction. 'mean'", "ignore:Using padding='same'")
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_are_pytorchs(name: str) -> None:
    run, *arrays = CASES[name]
    pairs = [both(array) for array in arrays]
    ours = [ot.as_tensor(own) for own, _ in pairs]
    theirs = [torch.as_tensor(their) for _, their in pairs]
    found, expected = run(own_functions, *ours), run(their_functions, *theirs)
    assert tuple(found.shape) == tuple(expected.shape)
    assert found.dtype.name == str(expected.dtype).partition(".")[2]
    assert_close(found.detach(), expected.detach())
    if not expected.requires_grad:
        return
    weights = RANDOM.normal(size=tuple(expected.shape)).astype(np.float32)
    (found * ot.tensor(weights)).sum().backward()
    (expected * torch.tensor(weights)).sum().backward()
    for own, their in zip(ours, theirs, strict=True):
        if their.grad is not None:
            assert own.grad is not None
            np.testing.assert_allclose(own.grad.numpy(), their.grad.numpy(), atol=5e-5, rtol=1e-4)


def test_names_are_pytorchs() -> None:
    for name in vars(own_functions):
        if not name.startswith("_") and callable(getattr(own_functions, name)):
            assert hasattr(their_functions, name), name


def test_dropout_of_channels_drops_them_whole() -> None:
    made = own_functions.dropout2d(ot.ones(50, 20, 3, 3), 0.25)
    sums = made.sum((2, 3)) / 9
    assert set(np.unique(sums.numpy().round(5))) == {0.0, np.float32(1.33333)}


def test_missing_names_point_to_the_nearest() -> None:
    with pytest.raises(AttributeError, match="nearest spelling is 'cross_entropy'"):
        _ = own_functions.cross_entropi
