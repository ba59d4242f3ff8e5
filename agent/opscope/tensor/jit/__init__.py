"""Models as graphs: traced or scripted, saved, loaded and run without their Python code.

>>> model = opscope.tensor.jit.trace(net.eval(), images)
>>> opscope.tensor.jit.save(opscope.tensor.jit.freeze(model), "net.pt")
>>> opscope.tensor.jit.load("net.pt")(images)

native/model/GRAPHS.md says what graphs mean; native/TENSOR.md has the order in which to read the
files of this package.
"""

from __future__ import annotations

from opscope.tensor.jit.compiled import CompiledModel
from opscope.tensor.jit.files import load, save
from opscope.tensor.jit.freezing import freeze
from opscope.tensor.jit.graph_builder import TraceError
from opscope.tensor.jit.recording import TracerWarning
from opscope.tensor.jit.scripting import script
from opscope.tensor.jit.tracing import trace

__all__ = [
    "CompiledModel",
    "TraceError",
    "TracerWarning",
    "freeze",
    "load",
    "save",
    "script",
    "trace",
]
