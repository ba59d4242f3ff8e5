"""Find the module and the line that called an operator, from the Python frames."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import opscope.tensor
from opscope.tensor.nn.module import Module

_TRACING = str(Path(__file__).with_name("tracing.py"))
_PACKAGE = str(Path(opscope.tensor.__file__).parent.parent) + "/"


def _frames() -> Iterator[FrameType]:
    """The frames of this thread, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def line() -> tuple[str, int] | None:
    """File and number of the innermost line outside this package."""
    for frame in _frames():
        if not frame.f_code.co_filename.startswith(_PACKAGE):
            return frame.f_code.co_filename, frame.f_lineno
    return None


def location() -> str | None:
    """The same for a graph: the file without its folders, which differ from machine to machine."""
    found = line()
    return None if found is None else f"{Path(found[0]).name}:{found[1]}"


def scope(paths: dict[int, str]) -> str | None:
    """The path of the innermost module whose method is running; `paths` by the modules' ids."""
    for frame in _frames() if paths else ():
        code = frame.f_code
        if code.co_filename == _TRACING:
            break
        if code.co_argcount == 0:
            continue
        own = frame.f_locals.get(code.co_varnames[0])
        if isinstance(own, Module) and id(own) in paths:
            return paths[id(own)] or None
    return None
