"""Bottleneck's compiled functions as operators: the list of its extension modules.

Tried with Bottleneck 1.6.
"""

from opscope.bridges.extension_modules import ExtensionModules

FRAMEWORK = "bottleneck"

PREFIXES = ("bottleneck",)

PROBE = ("", "bottleneck.nansum(1.0)")

LATE_MODULES = (
    *("bottleneck.move", "bottleneck.nonreduce", "bottleneck.nonreduce_axis", "bottleneck.reduce"),
)

_modules = ExtensionModules(
    FRAMEWORK, LATE_MODULES, prefixes=dict.fromkeys(LATE_MODULES, "bottleneck::")
)
attach, detach, facts, status, seen = _modules.functions
