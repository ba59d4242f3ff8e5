"""`embedding_bag`: the rows of a table that belong together, summed up."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from opscope._tensor import Tensor, functions, tensor
from opscope.tensor.nn.functional.normalization import embedding


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    """The "sum", "mean" or "max" of the rows of weight in each bag: (bags, width).

    Indices are (bags, n), or (all,) with the `offsets` at which bags begin, and the end of the last
    one if `include_last_offset`. An empty bag gives zeros; `padding_idx` counts as no index.
    `per_sample_weights`, of the indices' sizes, are for sums. ValueError for what does not go
    together.
    """
    if mode not in ("sum", "mean", "max"):
        raise ValueError(f"embedding_bag(): mode is {mode!r}: 'sum', 'mean' or 'max'")
    if (offsets is None) != (input.ndim == 2) or input.ndim not in (1, 2):
        raise ValueError("embedding_bag(): either indices (bags, n), or (all,) and offsets")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError("embedding_bag(): per_sample_weights are for mode 'sum'")
    starts = _starts(input, offsets, include_last_offset)
    flat = input.reshape((-1,))
    rows = embedding(flat, weight, None, max_norm, norm_type, scale_grad_by_freq, sparse)
    bags = [bag for bag, (begin, end) in enumerate(pairwise(starts)) for _ in range(end - begin)]
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.reshape((-1, 1))
    if padding_idx is not None:
        padding = padding_idx % weight.shape[0]
        kept = [place for place, index in enumerate(flat.tolist()) if index != padding]
        rows = rows.index_select(0, tensor(kept, dtype=flat.dtype))
        bags = [bags[place] for place in kept]
    zeros = functions["zeros"]((len(starts) - 1, weight.shape[1]), dtype=weight.dtype)
    if not bags:
        return zeros + rows.sum()
    if mode == "max":
        parts = rows.split([bags.count(bag) for bag in range(len(starts) - 1)], 0)
        most = [part.amax(0) if len(part) else zeros[0] for part in parts]
        return functions["stack"](most, 0)
    made = zeros.index_add(0, tensor(bags), rows)
    if mode == "sum":
        return made
    counts = [max(1, bags.count(bag)) for bag in range(len(starts) - 1)]
    return made / tensor(counts, dtype=weight.dtype).unsqueeze(1)


def _starts(input: Tensor, offsets: Tensor | None, include_last: bool) -> list[int]:
    """Where each bag begins, and where the last one ends."""
    if offsets is None:
        return [bag * input.shape[1] for bag in range(input.shape[0] + 1)]
    starts: list[int] = offsets.tolist()
    count = input.shape[0]
    if not starts or starts[0] != 0 or starts != sorted(starts) or starts[-1] > count:
        raise ValueError(f"embedding_bag(): offsets are {starts}: from 0, ascending, to {count}")
    return starts if include_last else [*starts, count]
