"""Arrays of any layout: transposed, stepped, reversed, expanded, zero-size, without dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.tensor.samples import Array

SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


def values(shape: tuple[int, ...], dtype: Any, seed: int) -> Array:
    """Normal numbers, or integers from -5 to 5 (unsigned: 0 to 5), or bools."""
    random = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return np.asarray(random.normal(size=shape), dtype)
    if dtype.kind == "b":
        return np.asarray(random.random(shape) < 0.5)
    return np.asarray(random.integers(0 if dtype.kind == "u" else -5, 6, shape), dtype)


@st.composite
def laid_out(draw: Any, shape: tuple[int, ...], dtype: Any = np.float64) -> Array:
    """An array of that shape, with its dimensions in any order in memory, stepped, or expanded."""
    dims = len(shape)
    order = draw(st.permutations(range(dims)))
    steps = draw(st.tuples(*[st.sampled_from([1, 1, 1, -1, 2, -3])] * dims))
    expanded = draw(st.tuples(*[st.sampled_from([False, False, False, True])] * dims))
    own = tuple(1 if grows else size for size, grows in zip(shape, expanded, strict=True))
    memory = np.zeros([own[dim] * abs(steps[dim]) + 1 for dim in order], dtype)
    view = memory.transpose(np.argsort(order)) if dims else memory
    view = view[
        (
            ...,
            *(
                slice(None, size * step, step) if step > 0 else slice(size * -step, 0, step)
                for size, step in zip(own, steps, strict=True)
            ),
        )
    ]
    assert view.shape == own
    view[...] = values(own, dtype, draw(st.integers(0, 999)))
    return np.broadcast_to(view, shape) if own != shape else view
