"""The functions of LightGBM's C library as operators: `lightgbm::LGBM_BoosterUpdateOneIter`.

Tried with LightGBM 4.7. The package calls them through ctypes. A call's time contains the work of
the library's own threads. Not seen: functions that a program gets from the library by itself.
"""

from opscope.bridges.extension_modules import ExtensionModules, library_functions

FRAMEWORK = "lightgbm"

PREFIXES = ("lightgbm",)

PROBE = ("", "lightgbm.basic._LIB.LGBM_GetLastError()")

_modules = ExtensionModules(
    FRAMEWORK, objects=library_functions("lightgbm.basic", "LGBM_GetLastError", "lightgbm::")
)
attach, detach, facts, status, seen = _modules.functions
