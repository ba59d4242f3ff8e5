"""Polars' queries as operators: what executes a plan, and the methods of frames and series.

Tried with Polars 2.1. A plan is one operator, `polars::PyLazyFrame.collect`, and its work on other
threads is in its time. Not seen: what builds a plan (expressions), and the steps of a plan.
"""

import sys

from opscope.bridges.extension_modules import ExtensionModules, Found, methods_of

FRAMEWORK = "polars"

PREFIXES = ("polars",)

PROBE = ("", "polars.Series([1]).sum()")

LATE_MODULES = ("polars._plr",)

_EXECUTING = ("collect", "sink", "profile", "describe", "fetch")


def _functions() -> Found:
    module = sys.modules.get(LATE_MODULES[0])
    found: Found = []
    for name in ("PyDataFrame", "PySeries"):
        found += methods_of(getattr(module, name, object), f"polars::{name}.")
    lazy = methods_of(getattr(module, "PyLazyFrame", object), "polars::PyLazyFrame.")
    return found + [one for one in lazy if one[1].rpartition(".")[2].startswith(_EXECUTING)]


_modules = ExtensionModules(FRAMEWORK, objects=_functions)
attach, detach, facts, status, seen = _modules.functions
