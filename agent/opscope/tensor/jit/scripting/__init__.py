"""`script`: a model from its Python code, with its control flow.

Each function is scripted by an abstract run of its syntax tree: `frame.py` has the state of that
run, `values.py` what an expression may be, `sequence.py`, `branches.py` and `carried.py` the
control flow. Files with handlers register them in `dispatch.py`; importing this package imports
all of them.
"""

from __future__ import annotations

from opscope.tensor.jit.scripting import (
    assign,
    attributes,
    calls,
    comparisons,
    listing,
    literals,
    logic,
    loops,
    messages,
    numbers,
    returns,
    statements,
    subscripts,
)
from opscope.tensor.jit.scripting.compile import script

__all__ = ["HANDLERS", "script"]

HANDLERS = (
    assign,
    attributes,
    calls,
    comparisons,
    listing,
    literals,
    logic,
    loops,
    messages,
    numbers,
    returns,
    statements,
    subscripts,
)
"""Modules that register what scripts a construct."""
