"""`Size` and `device`: shapes of tensors, and the place of their memory, as in PyTorch."""

from __future__ import annotations

import math
import re
from typing import Any

from opscope import _tensor


class Size(tuple[int, ...]):
    """The sizes of a tensor's dimensions: a tuple whose parts are Sizes too."""

    __slots__ = ()

    def numel(self) -> int:
        """The number of elements of a tensor of these sizes."""
        return math.prod(self)

    def __getitem__(self, place: Any) -> Any:
        found: Any = tuple.__getitem__(self, place)
        return Size(found) if isinstance(place, slice) else found

    def __add__(self, other: Any) -> Size:
        return Size(tuple.__add__(self, tuple(other)))

    def __radd__(self, other: Any) -> Size:
        return Size((*other, *self))

    def __mul__(self, count: Any) -> Size:
        return Size(tuple.__mul__(self, count))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    def __reduce__(self) -> Any:
        return Size, (tuple(self),)


class device:  # noqa: N801 - PyTorch's name
    """A device by type and index: `device("cpu")`, `device("cuda", 1)`, `device("cuda:1")`.

    Any device has a name; tensors are on the cpu alone. RuntimeError for a text that is no name of
    a device.
    """

    __slots__ = ("index", "type")

    type: str
    index: int | None

    def __init__(self, type: Any, index: int | None = None) -> None:
        text = str(type)
        named = re.fullmatch(r"(cpu|cuda|mps|xpu|meta|hpu|mtia|xla|ipu|vulkan)(?::(\d+))?", text)
        if named is None or (named[2] is not None and index is not None):
            raise RuntimeError(f"device(): {text!r} is no device; tensors here are on the cpu")
        object.__setattr__(self, "type", named[1])
        object.__setattr__(self, "index", int(named[2]) if named[2] else index)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"device.{name} cannot be set")

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{index})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, device):
            return NotImplemented
        return (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __reduce__(self) -> Any:
        return device, (self.type, self.index)


CPU = device("cpu")


def install() -> None:
    """Makes shapes Sizes, and CPU the device of tensors; called once, by opscope.tensor."""
    _tensor.set_types(Size, CPU)


def check(place: Any, name: str) -> None:
    """RuntimeError unless `place`, a device or its text, is the cpu or None."""
    if place is not None and device(str(place)).type != "cpu":
        raise RuntimeError(f"{name}(): device {str(place)!r}: tensors here are on the cpu")
