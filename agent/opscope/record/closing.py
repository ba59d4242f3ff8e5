"""Keep C out of Python once the interpreter ends: threads that outlive it must not enter it.

Each module that lets C call Python imports this; native/python/outside.c checks the flag.
"""

import atexit

from opscope._native import lib


@atexit.register
def _close() -> None:
    lib.opscope_py_is_closed = 1
