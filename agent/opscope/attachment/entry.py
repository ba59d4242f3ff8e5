"""From a program that imports a framework into opscope, if opscope can be had there.

site/sitecustomize.py loads this file by its path, because the interpreter may be one in which
opscope is not installed; so nothing of opscope may be imported at its top. Not here: waiting for
the framework (site/sitecustomize.py), attaching (session.py).
"""

import os
import sys
from collections.abc import Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_OFF = ("0", "false", "no", "off")
_PACKAGE = os.path.dirname(os.path.dirname(__file__))

passed_over: list[str] = []
"""Where other opscopes are that would have attached; filled in by the hook before all else."""

_session: "Any" = None
"""What is to hear of frameworks: the session of this opscope, or the entry of another one."""


def arriving(name: str) -> None:
    """Begins the session, or writes down why there is none, before the framework runs.

    Where the kill switch is on, nothing of opscope is imported but the ledger, so that the switch
    holds whatever is wrong with the rest.
    """
    global _session
    if os.environ.get("OPSCOPE_ENABLED", "").strip().lower() in _OFF:
        _write_ledger("disabled", "OPSCOPE_ENABLED")
        return
    if not is_main_interpreter():
        _write_ledger("subinterpreter", f"{name} imported in a subinterpreter")
        return
    before = set(sys.modules)
    try:
        _session = _take_session()
    except Exception as error:
        for module in set(sys.modules) - before:
            if module.partition(".")[0] == "opscope":
                del sys.modules[module]
        _write_ledger("opscope-missing", str(error))
        return
    _session.arriving(name)


def arrived(name: str) -> Sequence[str]:
    """Tells the session, if there is one, that the framework has run.

    Returns the modules whose import the session wants to hear of next.
    """
    return _session.arrived(name) if _session is not None else ()


def is_main_interpreter() -> bool:
    """False in a subinterpreter, where the modules of another interpreter may not be used.

    Opscope's extension is one for the whole process; the interpreter that loads it first may end
    before the process does. Only the main one does not.
    """
    import _thread

    ask = getattr(_thread, "_is_main_interpreter", None)  # from Python 3.12 on
    if ask is not None:
        return bool(ask())
    import _signal  # type: ignore[import-not-found]

    try:
        _signal.signal(0, _signal.SIG_DFL)
    except ValueError as error:
        if "out of range" in str(error):
            return True  # what else is wrong with it is looked at in the main interpreter only
    try:
        # Takes some milliseconds, and is needed only in threads.
        import _xxsubinterpreters as interpreters  # type: ignore[import-not-found]
    except ImportError:
        return True
    return bool(interpreters.get_current() == interpreters.get_main())


def check() -> str:
    """The version of the opscope that this interpreter would attach with, now imported.

    Raises ImportError where it cannot be had.
    """
    taken = _take_session()
    if "opscope" not in sys.modules:
        return str(taken.check())
    return str(sys.modules["opscope"].__version__)


def _take_session() -> "Any":
    """The session of the one opscope of this process.

    Where `import opscope` gives another one than that of this file, the other has the process, from
    its entry on: one half of each would be neither. Where it gives none, it is made to give the one
    beside this file, with nothing added to sys.path. That is no guess: opscope's extension is of
    the stable ABI, good for every CPython from 3.10 on, and itself refuses a cffi that it does not
    know.
    """
    package = _importable()
    if package and not os.path.samefile(package, _PACKAGE):
        entry = _load("opscope.attachment.entry", None, package, "attachment", "entry.py")
        del sys.modules["opscope.attachment.entry"]
        entry.passed_over = [*passed_over, _PACKAGE]
        return entry
    if not package:
        _bring_cffi()
        _load("opscope", [_PACKAGE], _PACKAGE, "__init__.py")
    from opscope.attachment import session

    if passed_over:
        session.tell_passed_over(passed_over)
    return session


def _importable() -> str:
    """The directory of the opscope that is or can be imported; "" where there is none."""
    if "opscope" in sys.modules:
        origin = getattr(sys.modules["opscope"], "__file__", None)
    else:
        # As importlib.util.find_spec does, which would have to be imported.
        for finder in sys.meta_path:
            found = finder.find_spec("opscope", None) if hasattr(finder, "find_spec") else None
            if found is not None:
                origin = found.origin
                break
        else:
            return ""
    package = os.path.dirname(origin or "")
    if not os.path.exists(os.path.join(package, "attachment", "session.py")):
        raise ImportError(f"another package has this name: {origin}")
    return package


def _bring_cffi() -> None:
    """Loads cffi's extension module from beside this opscope, if it is there for this Python.

    Under a name of our own: the program may come to import another version of cffi, which would
    not take this one. opscope._native looks for that name first.
    """
    from importlib.machinery import EXTENSION_SUFFIXES

    for folder in ("cffi", ""):
        file = os.path.join(
            os.path.dirname(_PACKAGE), folder, f"_cffi_backend{EXTENSION_SUFFIXES[0]}"
        )
        if os.path.exists(file):
            _load("opscope._cffi_backend", None, file)
            return


def _write_ledger(code: str, text: str) -> None:
    ledger = _load("opscope_ledger", None, _PACKAGE, "attachment", "ledger.py")
    del sys.modules["opscope_ledger"]
    ledger.write(None, code, text)


def _load(name: str, packages: list[str] | None, *path: str) -> "Any":
    from importlib.util import module_from_spec, spec_from_file_location

    file = os.path.join(*path)
    spec = spec_from_file_location(name, file, submodule_search_locations=packages)
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module
