"""Expressions that numexpr evaluates as operators: all are `numexpr::call`.

Tried with numexpr 2.14. An operator's time contains the work on numexpr's own threads, and not the
compilation of its expression, which is Python.
"""

import sys

from opscope.bridges.extension_modules import ExtensionModules, Found

FRAMEWORK = "numexpr"

PREFIXES = ("numexpr",)


def _functions() -> Found:
    compiled = getattr(sys.modules.get("numexpr.interpreter"), "NumExpr", None)
    # Any object shows the type of all; this one has no expression.
    return [] if compiled is None else [(compiled.__new__(compiled), "numexpr::")]


_modules = ExtensionModules(FRAMEWORK, objects=_functions)
attach, detach, facts, status, seen = _modules.functions
