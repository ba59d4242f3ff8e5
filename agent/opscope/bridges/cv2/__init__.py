"""OpenCV's functions as operators, and the methods of its classes.

Tried with OpenCV 5.0. The package `cv2` copies the functions of an extension module of the same
name, `cv2._native`. Not seen: functions of its submodules, such as `cv2.aruco`, and operators of a
network within `cv2::dnn_Net.forward`.
"""

import sys

from opscope.bridges.extension_modules import ExtensionModules, Found, functions_of

FRAMEWORK = "cv2"

PREFIXES = ("cv2",)

PROBE = ("", "cv2.norm((1.0, 2.0))")


def _functions() -> Found:
    module = sys.modules[FRAMEWORK]
    return functions_of(getattr(module, "_native", module), FRAMEWORK, "cv2::")


_modules = ExtensionModules(FRAMEWORK, objects=_functions)
attach, detach, facts, status, seen = _modules.functions
