"""The functions of XGBoost's C library as operators, such as `xgboost::XGBoosterUpdateOneIter`.

Tried with XGBoost 3.2. The package calls them through ctypes. A call's time contains the work of
the library's own threads. Not seen: functions that a program gets from the library by itself.
"""

import sys
from collections.abc import Iterator

from opscope.bridges.extension_modules import ExtensionModules

FRAMEWORK = "xgboost"

PREFIXES = ("xgboost",)

PROBE = ("", "xgboost.core._LIB.XGBGetLastError()")


def _functions() -> Iterator[tuple[object, str]]:
    library = getattr(sys.modules.get("xgboost.core"), "_LIB", None)
    one = getattr(library, "XGBGetLastError", None)  # all functions of a library have one type
    if one is not None:
        yield one, "xgboost::"


_modules = ExtensionModules(FRAMEWORK, objects=_functions)
attach = _modules.attach
detach = _modules.detach
facts = _modules.facts
status = _modules.status
seen = _modules.seen
