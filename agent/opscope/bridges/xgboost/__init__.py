"""The functions of XGBoost's C library as operators, such as `xgboost::XGBoosterUpdateOneIter`.

Tried with XGBoost 3.2. The package calls them through ctypes. A call's time contains the work of
the library's own threads. Not seen: functions that a program gets from the library by itself.
"""

from opscope.bridges.extension_modules import ExtensionModules, library_functions

FRAMEWORK = "xgboost"

PREFIXES = ("xgboost",)

PROBE = ("", "xgboost.core._LIB.XGBGetLastError()")

_modules = ExtensionModules(
    FRAMEWORK, objects=library_functions("xgboost.core", "XGBGetLastError", "xgboost::")
)
attach, detach, facts, status, seen = _modules.functions
