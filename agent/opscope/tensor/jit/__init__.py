"""Models as graphs: traced, saved, loaded and run without their Python code."""

from __future__ import annotations

from opscope.tensor.jit.compiled import CompiledModel

__all__ = ["CompiledModel"]
