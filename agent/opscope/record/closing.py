"""Shuts the door to Python as the interpreter ends: threads that outlive it must not enter it.

Imported by every module that lets C call Python; what C finds closed is in native/generate_cffi.py.
"""

import atexit

from opscope._native import lib


@atexit.register
def _close() -> None:
    lib.opscope_py_is_closed = 1
