"""`pad`: more elements at the edges, or fewer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opscope._tensor import Tensor, functions


def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Any:
    """The tensor with pad[0] elements before and pad[1] behind along the last dimension, pad[2] and
    pad[3] along the one before, and so on. Negative numbers cut.

    `mode`: "constant" fills with `value` (0); "reflect" mirrors without the edge, "replicate"
    repeats the edge, "circular" continues at the other side.
    """
    if len(pad) % 2 or len(pad) > 2 * input.ndim:
        raise RuntimeError(f"pad(): {len(pad)} numbers for {input.ndim} dimensions")
    if mode != "constant":
        if value:
            raise RuntimeError(f"pad(): mode {mode!r} takes no value")
        for place in range(len(pad) // 2):
            input = _extended(input, -1 - place, pad[2 * place], pad[2 * place + 1], mode)
        return input
    fill = 0 if value is None else value
    for place in range(len(pad) // 2):
        input = _filled(input, -1 - place, pad[2 * place], pad[2 * place + 1], fill)
    return input


def _filled(input: Tensor, dim: int, before: int, behind: int, value: float) -> Tensor:
    size = input.shape[dim]
    if before < 0 or behind < 0:
        stop = size + min(behind, 0)
        input = input.narrow(dim, max(-before, 0), stop - max(-before, 0))
    shape = list(input.shape)
    parts = [input]
    if before > 0:
        shape[dim] = before
        parts.insert(0, functions["full"](shape, value, dtype=input.dtype))
    if behind > 0:
        shape[dim] = behind
        parts.append(functions["full"](shape, value, dtype=input.dtype))
    made: Tensor = functions["cat"](parts, dim) if len(parts) > 1 else input
    return made


def _extended(input: Tensor, dim: int, before: int, behind: int, mode: str) -> Tensor:
    size = input.shape[dim]
    places = functions["arange"](-before, size + behind)
    if mode == "replicate":
        places = places.clamp(0, size - 1)
    elif mode == "circular":
        if max(before, behind) > size:
            raise RuntimeError(f"pad(): circular pads at most {size} elements here")
        places = places % size
    elif mode == "reflect":
        if max(before, behind) >= size:
            raise RuntimeError(f"pad(): reflect pads at most {size - 1} elements here")
        places = size - 1 - (places.abs() - (size - 1)).abs()
    else:
        raise NotImplementedError(f"pad(): no mode {mode!r}")
    return input.index_select(dim, places)
