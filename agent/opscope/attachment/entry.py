"""From a program that imports a framework into opscope, if opscope can be had there.

site/sitecustomize.py loads this file by its path, because the interpreter may be one in which
opscope is not installed; so nothing of opscope may be imported at its top. Not here: waiting for
the framework (site/sitecustomize.py), attaching (session.py).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_OFF = ("0", "false", "no", "off")
_PACKAGE = os.path.dirname(os.path.dirname(__file__))


_session: ModuleType | None = None


def arriving(name: str) -> None:
    """Begins the session, or writes down why there is none, before the framework runs.

    Where the kill switch is on, nothing of opscope is imported but the ledger, so that the switch
    holds whatever is wrong with the rest.
    """
    global _session
    if os.environ.get("OPSCOPE_ENABLED", "").strip().lower() in _OFF:
        _write_ledger("disabled", "OPSCOPE_ENABLED")
        return
    before = set(sys.modules)
    try:
        _make_importable()
        from opscope.attachment import session
    except Exception as error:
        for module in set(sys.modules) - before:
            if module.partition(".")[0] == "opscope":
                del sys.modules[module]
        _write_ledger("opscope-missing", str(error))
        return
    _session = session
    session.arriving(name)


def arrived(name: str) -> Sequence[str]:
    """Tells the session, if there is one, that the framework has run.

    Returns the modules whose import the session wants to hear of next.
    """
    return _session.arrived(name) if _session is not None else ()


def _make_importable() -> None:
    """Sees to it that `import opscope` gives opscope: as installed, or else the one beside this.

    The latter adds nothing to sys.path, and is no guess: opscope's extension is of the stable ABI,
    good for every CPython from 3.10 on, and itself refuses a cffi that it does not know.
    """
    if "opscope" in sys.modules:
        return
    # As importlib.util.find_spec does, which would have to be imported.
    for finder in sys.meta_path:
        found = finder.find_spec("opscope", None) if hasattr(finder, "find_spec") else None
        if found is not None:
            package = os.path.dirname(found.origin or "")
            if not os.path.exists(os.path.join(package, "attachment", "session.py")):
                raise ImportError(f"another package has this name: {found.origin}")
            return
    _load("opscope", [_PACKAGE], "__init__.py")


def _write_ledger(code: str, text: str) -> None:
    ledger = _load("opscope_ledger", None, "attachment", "ledger.py")
    del sys.modules["opscope_ledger"]
    ledger.write(None, code, text)


def _load(name: str, packages: list[str] | None, *path: str) -> Any:
    from importlib.util import module_from_spec, spec_from_file_location

    file = os.path.join(_PACKAGE, *path)
    spec = spec_from_file_location(name, file, submodule_search_locations=packages)
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
