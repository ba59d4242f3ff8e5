"""Convolution and pooling of any geometry against PyTorch, and their errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional
from torch.nn.grad import conv2d_weight

from opscope import tensor as ot
from opscope._native import lib
from tests.examples import examples

sizes = st.tuples(st.integers(1, 9), st.integers(1, 9))
kernels = st.tuples(st.integers(1, 4), st.integers(1, 4))
steps = st.tuples(st.integers(1, 3), st.integers(1, 3))
paddings = st.tuples(st.integers(0, 3), st.integers(0, 3))


def close(own: Any, their: Any, tolerance: float = 1e-11) -> None:
    np.testing.assert_allclose(
        own.detach().numpy(), their.detach().numpy(), rtol=tolerance, atol=tolerance, strict=True
    )


def both(array: Any) -> tuple[Any, Any]:
    return ot.tensor(array).requires_grad_(), torch.tensor(array, requires_grad=True)


def compare(own: Any, their: Any, arrays: list[Any], tolerance: float = 1e-11) -> None:
    """Values and gradients of two functions of the same arrays."""
    pairs = [both(array) for array in arrays]
    result, expected = own(*(pair[0] for pair in pairs)), their(*(pair[1] for pair in pairs))
    close(result, expected, tolerance)
    gradient = np.random.default_rng(1).normal(size=result.shape).astype(arrays[0].dtype)
    result.backward(ot.tensor(gradient))
    expected.backward(torch.tensor(gradient))
    for tensor, twin in pairs:
        close(tensor.grad, twin.grad, tolerance)


def convolve(x: Any, w: Any, b: Any, *settings: Any, tolerance: float = 1e-11) -> None:
    compare(
        lambda *tensors: ot.conv2d(*tensors, *settings),
        lambda *tensors: functional.conv2d(*tensors, *settings),
        [x, w, b],
        tolerance,
    )


@examples(20)
@given(
    batch=st.integers(0, 3),
    groups=st.integers(1, 3),
    channels=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    size=sizes,
    kernel=kernels,
    stride=steps,
    padding=paddings,
    dilation=steps,
)
def test_conv2d_of_any_geometry(
    batch: int,
    groups: int,
    channels: Any,
    size: Any,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
) -> None:
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    size = tuple(map(max, size, (s - 2 * p for s, p in zip(spans, padding, strict=True))))
    into, out = channels
    random = np.random.default_rng(0)
    convolve(
        random.normal(size=(batch, groups * into, *size)),
        random.normal(size=(groups * out, into, *kernel)),
        random.normal(size=groups * out),
        stride,
        padding,
        dilation,
        groups,
    )


# Where a strip is part of a row, some rows, and where the kernel's rows share a strip's patches or,
# being too many, do not; one image whose channels are shared out; more images than partial sums.
@pytest.mark.parametrize(
    ("input", "weight", "padding"),
    [
        ((1, 70, 2, 700), (2, 70, 1, 3), (0, 1)),
        ((1, 70, 3, 700), (2, 70, 3, 3), (1, 2)),
        ((2, 40, 30, 31), (33, 40, 3, 3), (1, 1)),
        ((1, 2, 90, 3), (2, 2, 60, 3), (4, 1)),
        ((1, 64, 40, 40), (48, 64, 3, 3), (1, 1)),
        ((37, 3, 9, 9), (4, 3, 2, 3), (1, 1)),
    ],
)
def test_conv2d_in_strips(input: Any, weight: Any, padding: Any) -> None:
    random = np.random.default_rng(0)
    convolve(random.normal(size=input), random.normal(size=weight), np.zeros(weight[0]), 1, padding)


def test_float32_is_within_its_tolerance() -> None:
    random = np.random.default_rng(0)
    arrays = [random.normal(size=size) for size in ((8, 32, 20, 20), (32, 32, 3, 3), (32,))]
    convolve(*(array.astype(np.float32) for array in arrays), 1, 1, tolerance=3e-4)


def test_the_gradient_does_not_depend_on_the_number_of_threads() -> None:
    random = np.random.default_rng(0)
    grad, input = (ot.tensor(random.normal(size=(40, 8, 16, 16))) for _ in range(2))
    before = lib.opscope_pool_threads()
    found = []
    try:
        for threads in (1, 2, 5):
            lib.opscope_pool_set_threads(threads)
            found.append(ot.conv2d_weight_backward(grad, input, (8, 8, 3, 3), 1, 1).tolist())
    finally:
        lib.opscope_pool_set_threads(before)
    assert found[0] == found[1] == found[2]


@examples(6)
@given(
    images=st.integers(1, 2),
    each=st.integers(1, 2),
    kernel=kernels,
    stride=steps,
    padding=paddings,
    dilation=st.tuples(st.integers(1, 2), st.integers(1, 2)),
)
def test_depthwise_convolutions_of_large_images_are_pytorchs(
    images: int, each: int, kernel: Any, stride: Any, padding: Any, dilation: Any
) -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(images, 3, 24, 21))
    w, b = random.normal(size=(3 * each, 1, *kernel)), random.normal(size=3 * each)
    convolve(x, w, b, stride, padding, dilation, 3)


@pytest.mark.parametrize("width", [8, 22, 34, 40])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_of_depthwise_kernels_have_only_their_own_factors(width: int, dtype: str) -> None:
    """Vectors also load what follows a line, a channel or an image."""
    random = np.random.default_rng(0)
    x = random.normal(size=(2, 3, 9, width)).astype(dtype)
    wanted = (width - 3) // 2 + 1
    grad = random.normal(size=(2, 3, 4, wanted)).astype(dtype)
    x[..., 2 * wanted + 1 :] = np.nan  # columns that no output reads
    x[:, 1], grad[:, 2] = np.inf, np.nan
    found = ot.conv2d_weight_backward(ot.tensor(grad), ot.tensor(x), (3, 1, 3, 3), 2, 0, 1, 3)
    clean = torch.tensor(x[:, :1, :, : 2 * wanted + 1])
    expected = conv2d_weight(clean, (1, 1, 3, 3), torch.tensor(grad[:, :1]), 2)
    close(found[:1], expected, 1e-4 if dtype == "float32" else 1e-11)
    assert not np.isfinite(found[1:].numpy()).any()


@examples(12)
@given(
    size=sizes, kernel=kernels, stride=steps, padding=paddings, dilation=steps, ceil=st.booleans()
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_max_pool2d_of_any_geometry(
    dtype: str, size: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool
) -> None:
    padding = tuple(min(p, k // 2) for p, k in zip(padding, kernel, strict=True))
    # For a window without elements, PyTorch returns an index outside of the image.
    dilation = tuple(d if p == 0 else 1 for d, p in zip(dilation, padding, strict=True))
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    array = np.random.default_rng(0).integers(0, 9, (2, *map(max, size, spans))).astype(dtype)
    compare(
        lambda x: ot.max_pool2d(x, kernel, stride, padding, dilation, ceil),
        lambda x: functional.max_pool2d(x, kernel, stride, padding, dilation, ceil),
        [array],
    )


def test_max_pool2d_finds_nan_and_the_place_of_minus_infinity() -> None:
    array = np.array([[[1, np.nan, -np.inf, -np.inf], [2, np.inf, -np.inf, -np.inf]]])
    compare(lambda x: ot.max_pool2d(x, 2), lambda x: functional.max_pool2d(x, 2), [array])


def test_a_window_all_of_padding_has_no_element_and_takes_no_gradient() -> None:
    x = ot.tensor(np.ones((1, 2, 2))).requires_grad_()
    pooled = ot.max_pool2d(x, 2, 1, 1, 3)
    assert pooled.tolist() == [[[float("-inf")]]]
    pooled.backward(ot.tensor([[[1.0]]], dtype=ot.float64))
    assert x.grad is not None
    assert x.grad.tolist() == np.zeros((1, 2, 2)).tolist()


@examples(12)
@given(
    size=sizes,
    kernel=kernels,
    stride=steps,
    padding=paddings,
    ceil=st.booleans(),
    counts=st.booleans(),
    divisor=st.sampled_from([None, 1, 7]),
)
def test_avg_pool2d_of_any_geometry(
    size: Any, kernel: Any, stride: Any, padding: Any, ceil: bool, counts: bool, divisor: Any
) -> None:
    padding = tuple(min(p, k // 2) for p, k in zip(padding, kernel, strict=True))
    array = np.random.default_rng(0).normal(size=(2, *map(max, size, kernel)))
    compare(
        lambda x: ot.avg_pool2d(x, kernel, stride, padding, ceil, counts, divisor),
        lambda x: functional.avg_pool2d(x, kernel, stride, padding, ceil, counts, divisor),
        [array],
    )


@examples(10)
@given(size=sizes, output=sizes)
def test_adaptive_avg_pool2d_of_any_geometry(size: Any, output: Any) -> None:
    compare(
        lambda x: ot.adaptive_avg_pool2d(x, output),
        lambda x: functional.adaptive_avg_pool2d(x, output),
        [np.random.default_rng(0).normal(size=(2, *size))],
    )


def zeros(*size: int) -> Any:
    return ot.zeros(size)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: ot.conv2d(zeros(2, 3, 5, 5), zeros(4, 2, 3, 3)),
            r"core::conv2d: input float32 of sizes \[2, 3, 5, 5\], weight float32 of sizes "
            r"\[4, 2, 3, 3\], groups 1: expected",
        ),
        (lambda: ot.conv2d(zeros(3, 5), zeros(4, 3, 3, 3)), r"sizes \[3, 5\].* expected floats of"),
        (
            lambda: ot.conv2d(zeros(3, 5, 5), zeros(4, 3, 3, 3).to(ot.float64)),
            "float32 of sizes.*weight float64",
        ),
        (lambda: ot.conv2d(zeros(4, 5, 5), zeros(4, 2, 3, 3), groups=3), "groups 3: expected"),
        (lambda: ot.conv2d(zeros(3, 5, 5), zeros(4, 3, 3, 3), groups=0), "groups 0: expected"),
        (
            lambda: ot.conv2d(zeros(3, 5, 5), zeros(4, 3, 3, 3), zeros(3)),
            r"bias is float32 of sizes \[3\]: expected float32 of sizes \[4\]",
        ),
        (
            lambda: ot.conv2d(zeros(3, 4, 5), zeros(4, 3, 5, 3)),
            "a kernel of size 5 with a dilation of 1 spans 5 elements, more than the image: 4 with",
        ),
        (
            lambda: ot.conv2d_input_backward(zeros(1, 4, 3, 3), zeros(4, 3, 3, 3), (1, 3, 6, 5)),
            r"grad_output is float32 of sizes \[1, 4, 3, 3\], the convolution gives float32 of "
            r"sizes \[1, 4, 4, 3\]",
        ),
        (lambda: ot.max_pool2d(zeros(2, 0, 4, 4), 2), r"float32 of sizes \[2, 0, 4, 4\]: expected"),
        (lambda: ot.max_pool2d(ot.ones(2, 4, 4, dtype=ot.int64), 2), "int64 of sizes"),
        (lambda: ot.avg_pool2d(zeros(2, 2), 2), r"sizes \[2, 2\]: expected floats \[batch"),
        (lambda: ot.max_pool2d(zeros(1, 4, 4), 5), "a kernel of size 5"),
        (
            lambda: ot.avg_pool2d_backward(zeros(1, 3, 2), (1, 4, 4), 2),
            r"grad_output is float32 of sizes \[1, 3, 2\]: expected float32 of sizes \[1, 2, 2\]",
        ),
    ],
)
def test_sizes_that_do_not_fit_are_refused(call: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: ot.conv2d(zeros(3, 5, 5), zeros(4, 3, 3, 3), stride=0),
            r"core::conv2d: stride is \[0, 0\]: expected two numbers, each 1 to",
        ),
        (lambda: ot.conv2d(zeros(3, 5, 5), zeros(4, 3, 3, 3), padding=-1), "padding is"),
        (lambda: ot.conv2d(zeros(3, 5, 5), zeros(4, 3, 3, 3), dilation=(1, 2, 3)), "dilation is"),
        (lambda: ot.max_pool2d(zeros(1, 4, 4), 0), "kernel_size is"),
        (lambda: ot.max_pool2d(zeros(1, 4, 4), 2, padding=2), "a padding of 2 is more than half"),
        (lambda: ot.avg_pool2d(zeros(1, 4, 4), 2, divisor_override=0), "divisor_override is 0"),
        (lambda: ot.adaptive_avg_pool2d(zeros(1, 4, 4), -1), "output_size is"),
    ],
)
def test_numbers_out_of_range_are_refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_indices_outside_of_the_image_are_refused() -> None:
    places = ot.tensor([[[0, 16]]], dtype=ot.int32)
    with pytest.raises(IndexError, match="outside of images of 4 by 4"):
        ot.max_pool2d_backward(ot.ones(1, 1, 2), places, (1, 4, 4))
