"""Models as graphs: traced or scripted, saved, loaded and run without their Python code."""

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
