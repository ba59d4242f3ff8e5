"""Operators and allocators from C shared libraries: `load_library(path)`.

A library is compiled against the headers of `opscope.get_include()` and linked with nothing;
`opscope/operator.h` describes how to write one.
"""

from __future__ import annotations

import os

from opscope import _tensor
from opscope._tensor import Operator


def load_library(path: str | os.PathLike[str]) -> dict[str, Operator]:
    """Load a library and return its operators by name ("mine::scale"), each callable.

    They are also in `opscope.tensor.operators`, and have ranges and gradients like the built-in
    ones. Loading a library again only returns them. Raises FileNotFoundError for a missing file,
    RuntimeError for a file that is no library, has no entry point or was compiled for another
    version, ValueError if a name is taken or a schema does not parse. It then registers nothing.
    """
    path = os.path.abspath(path)
    if not os.path.exists(path):
        raise FileNotFoundError(f"load_library: there is no {path}")
    return _tensor.load_library(path)
