"""Identify the interpreter. Imports nothing of opscope, since entry.py calls it before it may."""

import sys

FREE_THREADED = "free-threaded Python older than 3.14: cffi does not support it"
NOT_BUILT = "free-threaded Python: opscope must be installed in its environment"


def unsupported_python() -> str:
    """The reason why opscope cannot observe this interpreter, else "".

    entry.py asks before it imports any part of opscope.
    """
    if sys.implementation.name != "cpython":
        return sys.implementation.name
    if sys.version_info < (3, 10):
        return "Python older than 3.10"
    return free_threaded_refusal((sys.version_info[0], sys.version_info[1]), sys.abiflags)


def free_threaded_refusal(version: "tuple[int, int]", flags: str) -> str:
    """The reason why opscope cannot observe a Python with these `abiflags`, else "".

    It does not depend on PYTHON_GIL: free-threaded Python loads no extension of the stable ABI.
    """
    return FREE_THREADED if "t" in flags and version < (3, 14) else ""


def is_main() -> bool:
    """False in a subinterpreter, where modules of another interpreter are unusable.

    The process has one copy of opscope's extension, and the interpreter that loads it first must
    live as long as the process. Only the main interpreter does.
    """
    import _thread

    ask = getattr(_thread, "_is_main_interpreter", None)  # from Python 3.12 on
    if ask is not None:
        return bool(ask())
    # The two modules are private to CPython, without type stubs. This does not import `importlib`.
    signal = __import__("_signal")
    try:
        signal.signal(0, signal.SIG_DFL)
    except ValueError as error:
        if "out of range" in str(error):
            return True  # only the main interpreter gets as far as the signal's number
    try:
        # Takes some milliseconds, and is needed only in threads.
        interpreters = __import__("_xxsubinterpreters")
    except ImportError:
        return True
    return bool(interpreters.get_current() == interpreters.get_main())
