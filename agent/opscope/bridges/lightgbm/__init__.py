"""The functions of LightGBM's C library as operators: `lightgbm::LGBM_BoosterUpdateOneIter`.

Tried with LightGBM 4.7. The package calls them through ctypes. A call's time contains the work of
the library's own threads. Not seen: functions that a program gets from the library by itself.
"""

import sys
from collections.abc import Iterator

from opscope.bridges.extension_modules import ExtensionModules

FRAMEWORK = "lightgbm"

PREFIXES = ("lightgbm",)

PROBE = ("", "lightgbm.basic._LIB.LGBM_GetLastError()")


def _functions() -> Iterator[tuple[object, str]]:
    library = getattr(sys.modules.get("lightgbm.basic"), "_LIB", None)
    one = getattr(library, "LGBM_GetLastError", None)  # all functions of a library have one type
    if one is not None:
        yield one, "lightgbm::"


_modules = ExtensionModules(FRAMEWORK, objects=_functions)
attach = _modules.attach
detach = _modules.detach
facts = _modules.facts
status = _modules.status
seen = _modules.seen
