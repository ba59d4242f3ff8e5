"""Operators, and allocators, of C shared libraries: ``load_library(path)``.

A library is compiled against the headers of ``opscope.get_include()`` and linked with nothing;
``opscope/operator.h`` says how one is written.
"""

from __future__ import annotations

import os

from opscope import _tensor
from opscope._tensor import Operator


def load_library(path: str | os.PathLike[str]) -> dict[str, Operator]:
    """Load a library and return its operators by name ("mine::scale"), each to be called.

    They are in ``opscope.tensor.operators`` too, and are ranges and take gradients as the built-in
    ones. Loading it again only returns them. FileNotFoundError where there is no such file;
    RuntimeError for one that is no library, has no entry point or was compiled for another version;
    ValueError where a name is taken or a schema does not parse. Then nothing of it is there.
    """
    path = os.path.abspath(path)
    if not os.path.exists(path):
        raise FileNotFoundError(f"load_library: there is no {path}")
    return _tensor.load_library(path)
