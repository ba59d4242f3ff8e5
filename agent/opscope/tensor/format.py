"""Print a tensor: `repr`, with PyTorch's layout and number formats.

The rules (use of exponents, column widths, position of "...") are those of PyTorch's
`torch/_tensor_str.py`, 2.13. Opens no range: elements are read directly from memory.
"""

from __future__ import annotations

import math
from typing import Any

from opscope._tensor import Tensor, bool, float32, int64

PRECISION = 4
THRESHOLD = 1000
EDGE = 3
LINE_WIDTH = 80

_PLAIN = (float32, int64, bool)  # dtypes that are not printed


class _Column:
    """The format of a tensor's numbers: all have one width."""

    def __init__(self, numbers: list[Any], floating: object) -> None:
        self._floating = floating
        self._whole = True
        self._exponents = False
        self._width = 1
        if not floating:
            self._width = max((len(str(number)) for number in numbers), default=1)
            return
        finite = [number for number in numbers if math.isfinite(number) and number != 0]
        if not finite:
            return
        self._whole = all(number == math.ceil(number) for number in finite)
        least, most = min(map(abs, finite)), max(map(abs, finite))
        self._exponents = most / least > 1000 or most > 1e8 or least < 1e-4
        self._width = max(len(self._text(number)) for number in finite)

    def _text(self, number: Any) -> str:
        if not self._floating:
            return str(number)
        if self._exponents:
            return f"{number:.{PRECISION}e}"
        if self._whole:
            return f"{number:.0f}" + ("." if math.isfinite(number) else "")
        return f"{number:.{PRECISION}f}"

    def text(self, number: Any) -> str:
        return self._text(number).rjust(self._width)

    @property
    def width(self) -> int:
        return self._width


def _flat(nested: Any, dims: int) -> list[Any]:
    if dims == 0:
        return [nested]
    return [number for part in nested for number in _flat(part, dims - 1)]


def _nested(
    values: Any, shape: tuple[int, ...], indent: int, column: _Column, short: object
) -> str:
    if not shape:
        return column.text(values)
    cut = short and shape[0] > 2 * EDGE
    if len(shape) == 1:
        texts = [column.text(number) for number in values]
        if cut:
            texts.insert(EDGE, " ...")
        each_line = max(1, (LINE_WIDTH - indent) // (column.width + 2))
        lines = [
            ", ".join(texts[start : start + each_line]) for start in range(0, len(texts), each_line)
        ]
        return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
    parts = [_nested(part, shape[1:], indent + 1, column, short) for part in values]
    if cut:
        parts.insert(EDGE, "...")
    return "[" + ("," + "\n" * (len(shape) - 1) + " " * (indent + 1)).join(parts) + "]"


def _with_suffixes(text: str, suffixes: list[str], indent: int) -> str:
    used = len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if used + len(suffix) + 2 > LINE_WIDTH:
            text += ",\n" + " " * indent + suffix
            used = indent + len(suffix)
        else:
            text += ", " + suffix
            used += len(suffix) + 2
    return text + ")"


def tensor_format(self: Tensor, spec: str) -> str:
    """`f"{loss:.3f}"`: a tensor of no dimensions is formatted as its number."""
    if self.ndim == 0 and type(self) is Tensor:
        return format(self.item(), spec)
    return object.__format__(self, spec)


def tensor_repr(self: Tensor) -> str:
    """`tensor([1., 2.], dtype=float64)`: values, and attributes without a default value."""
    prefix = "tensor("
    suffixes = []
    if self.numel() == 0:
        body = "[]"
        if self.ndim != 1:
            suffixes.append(f"size={tuple(self.shape)}")
        if self.dtype is not float32:
            suffixes.append(f"dtype={self.dtype.name}")
    else:
        short = self.numel() > THRESHOLD
        values = self._corners(EDGE) if short else self.tolist()
        column = _Column(_flat(values, self.ndim), self.dtype.is_floating_point)
        body = _nested(values, self.shape, len(prefix), column, short)
        if self.dtype not in _PLAIN:
            suffixes.append(f"dtype={self.dtype.name}")
    if self.grad_fn is not None:
        suffixes.append(f"grad_fn={self.grad_fn!r}")
    elif self.requires_grad:
        suffixes.append("requires_grad=True")
    return _with_suffixes(prefix + body, suffixes, len(prefix))
