"""Functions that Numba compiles for the processor as operators: `numba::NAME`.

Tried with Numba 0.68. The first call of a function for some types contains its compilation. Not
seen: what one compiled function calls in another, and ufuncs, which belong to NumPy's bridge.
"""

import sys

from opscope.bridges.extension_modules import ExtensionModules, Found

FRAMEWORK = "numba"

PREFIXES = ("numba",)


def _functions() -> Found:
    dispatcher = getattr(sys.modules.get("numba.core.registry"), "CPUDispatcher", None)
    # Any object shows the type of all; this one is never compiled.
    return [] if dispatcher is None else [(dispatcher(_nothing), "numba::")]


def _nothing() -> None:
    pass


_modules = ExtensionModules(FRAMEWORK, objects=_functions)
attach, detach, facts, status, seen = _modules.functions
