"""The bits of a result do not depend on the number of threads.

Vector functions differ in the last bit from those for a loop's last elements, so the pieces of a
split must begin at vector boundaries. The last bits of OpenBLAS's products do depend on its
threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

from opscope import tensor as ot
from tests.examples import few_or
from tests.tensor.samples import outputs_of

pytestmark = pytest.mark.examples

# Two and three pieces each, at sizes where no vector begins.
COUNT = 140009
COUNTS = [COUNT, 65537, 262143][: few_or(1, 3)]
LEFT_OUT = {"core::dot", "core::matmul", "core::linear", "core::empty_like", "core::unbind"}
"""The last makes a quarter of a million views and computes nothing."""


def numbers(count: int, dtype: str, seed: int = 0) -> ot.Tensor:
    drawn = np.random.default_rng(seed).uniform(0.05, 0.95, count)
    return ot.from_numpy(drawn.astype(dtype))


def layouts(count: int, dtype: str, seed: int = 0) -> dict[str, ot.Tensor]:
    """Arrays of about that many numbers: contiguous, and as rows with gaps."""
    flat = numbers(count, dtype, seed)
    table = flat[: count // 301 * 301].reshape(-1, 301)
    return {"flat": flat, "columns left out": table[:, :299], "transposed": table[:, :299].t()}


def takes(name: str, count: int) -> bool:
    """Whether the operator takes only that many tensors, of any dimensions."""
    if name.endswith("_") or name in LEFT_OUT or not name.startswith("core::"):
        return False
    try:
        for tensor in (numbers(6, "float32"), numbers(6, "float32").reshape(2, 3)):
            ot.operators[name](*[tensor] * count)
    except (TypeError, ValueError, RuntimeError):
        return False
    return True


UNARY = sorted(name for name in ot.operators if takes(name, 1))
BINARY = sorted(name for name in ot.operators if takes(name, 2))


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = ot.get_num_threads()
    yield
    ot.set_num_threads(before)


def bits(threads: int, compute: Callable[[], Any]) -> list[bytes]:
    ot.set_num_threads(threads)
    ot.manual_seed(7)
    return [output.contiguous().numpy().tobytes() for output in outputs_of(compute())]


def assert_same_bits(what: object, compute: Callable[[], Any]) -> None:
    alone = bits(1, compute)
    for count in (2, 3):
        assert bits(count, compute) == alone, (what, count)


def test_the_table_has_them() -> None:
    assert {"core::sin", "core::gelu", "core::sum", "core::bernoulli", "core::var"} <= {*UNARY}
    assert {"core::add", "core::pow", "core::tanh_backward", "core::logaddexp"} <= {*BINARY}


@pytest.mark.parametrize("name", UNARY)
def test_of_one_tensor(name: str) -> None:
    for dtype in ("float32", "float64"):
        for count in COUNTS:
            for layout, x in layouts(count, dtype).items():
                assert_same_bits((dtype, count, layout), partial(ot.operators[name], x))


@pytest.mark.parametrize("name", BINARY)
def test_of_two_tensors(name: str) -> None:
    for dtype in ("float32", "float64"):
        for count in COUNTS:
            left, right = layouts(count, dtype), layouts(count, dtype, 1)
            for layout, x in left.items():
                compute = partial(ot.operators[name], x, right[layout])
                assert_same_bits((dtype, count, layout), compute)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_of_rows_with_one_row(dtype: str) -> None:
    table = layouts(COUNT, dtype)["columns left out"]
    row = table[0]
    assert_same_bits(dtype, lambda: table.pow(row))
    assert_same_bits(dtype, lambda: row.pow(table))
    assert_same_bits(dtype, lambda: table.t().pow(row.unsqueeze(1)))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_of_a_forward_and_its_backward(dtype: str) -> None:
    table = layouts(COUNT, dtype)["columns left out"].contiguous()

    def gradients() -> tuple[ot.Tensor, ...]:
        x = table.clone().requires_grad_()
        weight = ot.ones([299], dtype=x.dtype).requires_grad_()
        h = ot.layer_norm(x, [299], weight).gelu().sigmoid()
        h = ot.batch_norm(h, weight, None, None, None, True).tanh().log_softmax(1)
        (h * table).mean().backward()
        assert x.grad is not None and weight.grad is not None
        return x.grad, weight.grad

    assert_same_bits(dtype, gradients)


# Some images; several small ones in a strip; one image, whose output channels are shared out; one
# output channel in each group.
@pytest.mark.parametrize(
    ("images", "kernels", "groups"),
    [
        ((8, 16, 17, 17), (24, 16, 3, 3), 1),
        ((9, 40, 7, 7), (100, 40, 3, 3), 1),
        ((1, 24, 30, 31), (120, 24, 3, 3), 1),
        ((3, 30, 30, 31), (30, 1, 3, 3), 30),
    ],
)
def test_of_a_convolution_and_its_gradients(images: Any, kernels: Any, groups: int) -> None:
    image = numbers(math.prod(images), "float32").reshape(images)
    weight = numbers(math.prod(kernels), "float32", 1).reshape(kernels)

    def gradients() -> tuple[Any, ...]:
        settings = (1, 1, 1, groups)
        out = ot.conv2d(image, weight, None, *settings)
        to_input = ot.conv2d_input_backward(out, weight, images, *settings)
        return out, to_input, ot.conv2d_weight_backward(out, image, kernels, *settings)

    assert_same_bits("conv2d", gradients)
