"""Every operator over inputs of any shape and layout against PyTorch: broadcast, empty, without
dimensions, transposed, stepped forward and backward, expanded.

If PyTorch rejects a call, the core must reject it too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from opscope import tensor as ot
from tests.examples import examples
from tests.tensor import oracle
from tests.tensor.layouts import SHAPES, laid_out, values
from tests.tensor.samples import Array, Sample, base_operators, call, outputs_of, samples_of

PROPERTY = examples(10)
# In place, but not element by element.
NOT_ELEMENTWISE = {
    "core::bernoulli",
    "core::copy",
    "core::index_add",
    "core::index_put",
    "core::scatter",
    "core::scatter_add",
    "core::uniform",
}
ELEMENTWISE = [
    name for name in base_operators() if name + "_" in ot.operators and name not in NOT_ELEMENTWISE
] + [
    "core::isclose",
    "core::isfinite",
    "core::isinf",
    "core::isnan",
    "core::logaddexp",
    "core::where",
]


def agree(name: str, *args: Any, **kwargs: Any) -> None:
    """The operator and PyTorch's give the same result, or both reject the call."""
    sample = Sample(name, "", args, kwargs)
    their_args, their_kwargs = sample.mapped(lambda array: oracle.convert(np.array(array)))
    own_args, own_kwargs = sample.mapped(ot.from_numpy)
    try:
        theirs = outputs_of(
            oracle.function(name)(*[oracle.convert(arg) for arg in their_args], **their_kwargs)
        )
    except (RuntimeError, IndexError, ValueError, TypeError):
        with pytest.raises((RuntimeError, IndexError, ValueError, TypeError), match="core::"):
            call(name, *own_args, **own_kwargs)
        return
    own = outputs_of(call(name, *own_args, **own_kwargs))
    assert len(own) == len(theirs)
    for found, expected in zip(own, theirs, strict=True):
        assert found.shape == tuple(expected.shape)
        assert found.dtype.name == str(expected.dtype).partition(".")[2]
        np.testing.assert_allclose(
            found.detach().numpy(), expected.detach().numpy(), rtol=1e-11, atol=1e-11
        )


def operands(data: Any, name: str) -> tuple[list[Array], Sample]:
    """Arrays that broadcast, one for each of the operator's first sample."""
    first = samples_of(name)[0]
    like = [arg for arg in first.args if isinstance(arg, np.ndarray)]
    shapes = data.draw(
        hnp.mutually_broadcastable_shapes(num_shapes=len(like), max_dims=4, min_side=0, max_side=4)
    )
    return [
        data.draw(laid_out(shape, array.dtype))
        for shape, array in zip(shapes.input_shapes, like, strict=True)
    ], first


@pytest.mark.parametrize("name", ELEMENTWISE)
@PROPERTY
@given(data=st.data())
def test_elementwise_operator_broadcasts_any_shapes_and_layouts(name: str, data: Any) -> None:
    arrays, first = operands(data, name)
    left = iter(arrays)
    args = [next(left) if isinstance(arg, np.ndarray) else arg for arg in first.args]
    agree(name, *args, **first.kwargs)


@pytest.mark.parametrize("name", [name for name in ELEMENTWISE if name + "_" in ot.operators])
@PROPERTY
@given(data=st.data())
def test_in_place_form_writes_any_layout(name: str, data: Any) -> None:
    first = samples_of(name)[0]
    shape = data.draw(SHAPES)
    args = []
    for arg in first.args:
        args.append(data.draw(laid_out(shape, arg.dtype)) if isinstance(arg, np.ndarray) else arg)
    # Its own memory is written, so no element may occur twice.
    args[0] = np.array(args[0], order=data.draw(st.sampled_from(["C", "F"])))
    sample = Sample(name, "", tuple(args), first.kwargs)
    own, kwargs = sample.mapped(ot.from_numpy)
    expected = outputs_of(call(name, *own, **kwargs))[0]
    if expected.dtype is own[0].dtype:
        expected = expected.clone()
        assert call(name + "_", *own, **kwargs) is own[0]
        np.testing.assert_array_equal(args[0], expected.numpy())


REDUCTIONS = ["sum", "mean", "prod", "var", "std", "amax", "amin", "any", "all", "logsumexp"]


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("name", REDUCTIONS)
@PROPERTY
@given(data=st.data(), shape=SHAPES, keepdim=st.booleans())
def test_reduction_folds_any_dimensions(
    name: str, data: Any, shape: tuple[int, ...], keepdim: bool
) -> None:
    dims = data.draw(st.sets(st.integers(0, max(len(shape) - 1, 0)), min_size=1))
    dims = [dim - len(shape) if data.draw(st.booleans()) and shape else dim for dim in dims]
    kinds = [np.float64] if name in ("var", "std", "mean", "logsumexp") else [np.float64, np.int64]
    array = data.draw(laid_out(shape, data.draw(st.sampled_from(kinds))))
    agree(f"core::{name}", array, dims, keepdim=keepdim)


@pytest.mark.parametrize("name", ["argmax", "argmin", "max", "min"])
@PROPERTY
@given(data=st.data(), shape=SHAPES, keepdim=st.booleans())
def test_search_finds_along_any_dimension(
    name: str, data: Any, shape: tuple[int, ...], keepdim: bool
) -> None:
    agree(f"core::{name}", data.draw(laid_out(shape)), data.draw(dims_of(shape)), keepdim=keepdim)


def dims_of(shape: tuple[int, ...]) -> Any:
    """A dimension of that shape, counted from either end."""
    last = max(len(shape), 1)
    return st.integers(-last, last - 1)


ALONG: dict[str, Any] = {
    "argsort": st.just(()),
    "chunk": st.tuples(st.integers(1, 5)),
    "cumprod": st.just(()),
    "cumsum": st.just(()),
    "log_softmax": st.just(()),
    "softmax": st.just(()),
    "sort": st.just(()),
    "split": st.tuples(st.integers(0, 5)),
    "topk": st.tuples(st.integers(0, 5)),
    "unbind": st.just(()),
}


@pytest.mark.parametrize("name", ALONG)
@PROPERTY
@given(data=st.data(), shape=SHAPES)
def test_operator_works_along_any_dimension(name: str, data: Any, shape: tuple[int, ...]) -> None:
    # With ties, topk's indices would be undefined.
    array = data.draw(laid_out(shape))
    if name == "topk":
        array = values(shape, np.float64, data.draw(st.integers(0, 99)))
    agree(f"core::{name}", array, *data.draw(ALONG[name]), data.draw(dims_of(shape)))


@PROPERTY
@given(data=st.data(), shape=SHAPES, step=st.integers(-3, 3))
def test_slices_and_windows_are_views_of_any_dimension(
    data: Any, shape: tuple[int, ...], step: int
) -> None:
    array = data.draw(laid_out(shape))
    dim = data.draw(dims_of(shape))
    bound = st.none() | st.integers(-6, 6)
    if shape and step:
        agree("core::slice", array, dim, data.draw(bound), data.draw(bound), step)
    agree("core::unfold", array, dim, data.draw(st.integers(0, 4)), max(step, 1))
    agree("core::select", array, dim, data.draw(st.integers(-4, 4)))


@PROPERTY
@given(data=st.data(), shape=SHAPES)
def test_shapes_change_as_pytorchs(data: Any, shape: tuple[int, ...]) -> None:
    array = data.draw(laid_out(shape))
    first, second = data.draw(dims_of(shape)), data.draw(dims_of(shape))
    order = data.draw(st.permutations(range(len(shape))))
    agree("core::transpose", array, first, second)
    agree("core::permute", array, order)
    agree("core::reshape", array, [-1] if 0 in shape else [shape[dim] for dim in order])
    agree("core::unsqueeze", array, first)
    agree("core::squeeze", array)
    agree("core::flatten", array, first, second)
    agree("core::flip", array, sorted({first % max(len(shape), 1), second % max(len(shape), 1)}))
    agree("core::repeat", array, [2, *[data.draw(st.integers(0, 2)) for _ in shape]])
    agree("core::tril", array, data.draw(st.integers(-5, 5)))
    agree("core::triu", array, data.draw(st.integers(-5, 5)))
    agree("core::expand", array, [3, *shape])
    agree("core::contiguous", array)
    agree("core::clone", array)
    agree("core::roll", array, [data.draw(st.integers(-5, 5))], [first])
    agree("core::nonzero", array > 0)
    agree("core::count_nonzero", array)
    agree("core::masked_select", array, array > 0)


@PROPERTY
@given(data=st.data(), shape=SHAPES)
def test_tensors_are_joined_along_any_dimension(data: Any, shape: tuple[int, ...]) -> None:
    parts = [data.draw(laid_out(shape)) for _ in range(data.draw(st.integers(1, 3)))]
    agree("core::stack", parts, data.draw(st.integers(-len(shape) - 1, len(shape))))
    if shape:
        agree("core::cat", parts, data.draw(dims_of(shape)))


@PROPERTY
@given(data=st.data(), shape=hnp.array_shapes(min_dims=0, max_dims=3, min_side=1, max_side=4))
def test_elements_are_gathered_and_scattered_by_indices(data: Any, shape: tuple[int, ...]) -> None:
    dim = data.draw(dims_of(shape))
    places = [data.draw(st.integers(0, size)) for size in shape]
    size = shape[dim] if shape else 1
    if shape:
        places[dim] = data.draw(st.integers(0, 5))
    index = values(tuple(places), np.int64, data.draw(st.integers(0, 99))) % size
    array = data.draw(laid_out(shape))
    agree("core::gather", array, dim, index)
    source = data.draw(laid_out(tuple(places)))
    agree("core::scatter_add", array, dim, index, source)
    # One destination per element, because otherwise the order would matter.
    agree("core::scatter", array, dim, np.zeros_like(index) if size == 1 else index, 1.5)
    if shape:
        rows = values((data.draw(st.integers(0, 4)),), np.int64, 1) % size
        picked = list(shape)
        picked[dim] = len(rows)
        agree("core::index_select", array, dim, rows)
        agree("core::index_add", array, dim, rows, data.draw(laid_out(tuple(picked))))


@PROPERTY
@given(data=st.data())
def test_matrices_multiply_over_any_layout(data: Any) -> None:
    side = st.integers(0, 4)
    rows, inner, columns, batch = (data.draw(side) for _ in range(4))
    a, b = data.draw(laid_out((rows, inner))), data.draw(laid_out((inner, columns)))
    agree("core::mm", a, b)
    agree("core::matmul", a, b)
    agree("core::addmm", data.draw(laid_out((rows, columns))), a, b)
    agree("core::linear", a, data.draw(laid_out((columns, inner))), data.draw(laid_out((columns,))))
    agree("core::mv", a, data.draw(laid_out((inner,))))
    stacked = data.draw(laid_out((batch, rows, inner)))
    agree("core::bmm", stacked, data.draw(laid_out((batch, inner, columns))))
    agree("core::matmul", stacked, b)
    agree("core::matmul", data.draw(laid_out((2, 1, rows, inner))), stacked.transpose(0, 2, 1))
    agree("core::matmul", data.draw(laid_out((inner,))), b)
    agree("core::dot", data.draw(laid_out((inner,))), data.draw(laid_out((inner,))))
    agree("core::outer", data.draw(laid_out((rows,))), data.draw(laid_out((columns,))))


@PROPERTY
@given(data=st.data(), shape=hnp.array_shapes(min_dims=2, max_dims=4, min_side=1, max_side=5))
def test_rows_and_channels_are_normalized_over_any_layout(
    data: Any, shape: tuple[int, ...]
) -> None:
    array = data.draw(laid_out(shape))
    count = data.draw(st.integers(1, len(shape)))
    agree(
        "core::layer_norm",
        array,
        shape[len(shape) - count :],
        data.draw(laid_out(shape[len(shape) - count :])),
        eps=0.1,
    )
    channels = shape[1]
    running = [np.abs(values((channels,), np.float64, seed)) for seed in (0, 1)]
    scale = data.draw(laid_out((channels,)))
    agree("core::batch_norm", array, scale, scale, *running, False, 0.1, 0.1)
    agree("core::batch_norm", array, scale, None, None, None, True, 0.1, 0.1)
    target = values((shape[0], *shape[2:]), np.int64, 0) % channels
    agree("core::cross_entropy", array, target, ignore_index=0, reduction="sum")
    agree("core::nll_loss", array, target, reduction="none")
    agree("core::mse_loss", array, data.draw(laid_out(shape)))
    agree("core::one_hot", target, channels)
