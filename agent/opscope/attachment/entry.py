"""The way from a program that imports a framework into opscope, if opscope is available there.

site/sitecustomize.py loads this file by its path, since the interpreter may be one without opscope
installed; so the top level imports nothing of opscope. site/sitecustomize.py waits for the
framework; session.py attaches.
"""

import os
import sys
from collections.abc import Sequence
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

_OFF = ("0", "false", "no", "off")
_PACKAGE = os.path.dirname(os.path.dirname(__file__))

THIS_MACHINE = EXTENSION_SUFFIXES[0].split("-", 2)[-1].removesuffix(".so")
"""The kind of machine as Python names it: processor, system and C library."""
_LIBRARIES = os.path.join(os.path.dirname(_PACKAGE), "machines", THIS_MACHINE)
"""In a payload, the place of opscope's C."""

passed_over: list[str] = []
"""Directories of other opscopes that would have attached; the hook fills it in first."""

_session: "Any" = None
"""The receiver of framework imports: the session of this opscope, or another opscope's entry."""


def arriving(name: str) -> None:
    """Begins the session before the framework runs, or records the reason for not doing so.

    With the kill switch on, this imports only the ledger of opscope, so the switch works whatever
    defect the rest has.
    """
    global _session
    if os.environ.get("OPSCOPE_ENABLED", "").strip().lower() in _OFF:
        _write_ledger("disabled", "OPSCOPE_ENABLED")
        return
    if _session is None:
        _session = _found_session(name)
    if _session is not None:
        _session.arriving(name)


def _found_session(framework: str) -> "Any":
    """The session, or None with the reason recorded."""
    interpreter = _about_interpreter()
    if unsupported := interpreter.unsupported_python():
        _write_ledger("unsupported-python", unsupported)
        return None
    if not interpreter.is_main():
        _write_ledger("subinterpreter", f"{framework} imported in a subinterpreter")
        return None
    before = set(sys.modules)
    try:
        return _take_session()
    except _NotBuiltError as error:
        _write_ledger("unsupported-python", str(error))
    except Exception as error:
        for module in set(sys.modules) - before:
            if module.partition(".")[0] == "opscope":
                del sys.modules[module]
        _write_ledger("opscope-missing", str(error))
    return None


def arrived(name: str) -> Sequence[str]:
    """Tells the session, if there is one, that the framework has run.

    Returns the names of the modules whose import the session waits for next.
    """
    return _session.arrived(name) if _session is not None else ()


class _NotBuiltError(Exception):
    """The opscope beside this file has no extension for this interpreter."""


def _about_interpreter() -> "Any":
    """The module interpreter.py, run from its file: opscope may not be imported yet."""
    name = "opscope_interpreter"
    module = type(sys)(name)
    _Loader(name, os.path.join(_PACKAGE, "attachment", "interpreter.py")).exec_module(module)
    return module


def check() -> str:
    """The version of the opscope that this interpreter would attach with; imports it.

    Raises ImportError if it is not available.
    """
    taken = _take_session()
    if "opscope" not in sys.modules:
        return str(taken.check())
    return str(sys.modules["opscope"].__version__)


def _take_session() -> "Any":
    """The session of this process's single opscope.

    If `import opscope` gives another opscope than this file's, the other one handles the process,
    from its entry on: halves of two versions would not fit together. If it gives none, this makes
    it give the opscope beside this file, without changing sys.path. That is safe: opscope's
    extension uses the stable ABI, which suits every CPython from 3.10 on, and rejects an unknown
    cffi itself. Free-threaded CPython needs an extension of its own, and often there is none.
    """
    package = _importable()
    if package and not os.path.samefile(package, _PACKAGE):
        entry = _load("opscope.attachment.entry", None, package, "attachment", "entry.py")
        del sys.modules["opscope.attachment.entry"]
        entry.passed_over = [*passed_over, _PACKAGE]
        return entry
    if not package:
        if "t" in sys.abiflags and not _is_built():
            raise _NotBuiltError(_about_interpreter().NOT_BUILT)
        _hide_package()
        _bring_cffi()
        packages = [_PACKAGE, _LIBRARIES] if os.path.isdir(_LIBRARIES) else [_PACKAGE]
        _load("opscope", packages, _PACKAGE, "__init__.py")
    from opscope.attachment import session

    if passed_over:
        session.tell_passed_over(passed_over)
    return session


def _importable() -> str:
    """The directory of the opscope that is or can be imported; "" without one."""
    if "opscope" in sys.modules:
        origin = getattr(sys.modules["opscope"], "__file__", None)
    else:
        # Like importlib.util.find_spec, but without the import of importlib.util.
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


def _is_built() -> bool:
    """Whether the extension beside this file is for this version of free-threaded Python."""
    name = f"_native{EXTENSION_SUFFIXES[0]}"
    return any(os.path.exists(os.path.join(folder, name)) for folder in (_PACKAGE, _LIBRARIES))


def _bring_cffi() -> None:
    """Loads cffi's extension module from beside this opscope, if it exists for this Python.

    It gets a private name: the program may later import another version of cffi, which would
    reject this extension. opscope._native looks for the private name first.
    """
    for folder in ("cffi", ""):
        file = os.path.join(
            os.path.dirname(_PACKAGE), folder, f"_cffi_backend{EXTENSION_SUFFIXES[0]}"
        )
        if os.path.exists(file):
            _load("opscope._cffi_backend", None, file)
            return


class _Loader(SourceFileLoader):
    """Gives a module's code a file name like `<opscope/record/ranges.py>`.

    Tools that trace a program skip names in these brackets, which are no files: coverage.py would
    otherwise count opscope's code as the program's if it lies outside of installed packages, and
    `python -m trace` would open the file. `__file__` is unchanged.
    """

    def get_code(self, fullname: str) -> "CodeType | None":
        code = super().get_code(fullname)
        try:
            # importlib itself uses it on bytecode that has been moved; it renames inner code too.
            from _imp import _fix_co_filename  # type: ignore[attr-defined]
        except ImportError:
            return code
        _fix_co_filename(code, f"<opscope{self.path.removeprefix(_PACKAGE)}>")
        return code


def _hide_package() -> None:
    """Makes later imports of this package's modules use these loaders."""
    kinds = (ExtensionFileLoader, EXTENSION_SUFFIXES), (_Loader, SOURCE_SUFFIXES)
    for directory in (_PACKAGE, os.path.join(_PACKAGE, "bridges")):
        with os.scandir(directory) as entries:
            for path in (directory, *(entry.path for entry in entries if entry.is_dir())):
                sys.path_importer_cache[path] = FileFinder(path, *kinds)


def _write_ledger(code: str, text: str) -> None:
    ledger = _load("opscope_ledger", None, _PACKAGE, "attachment", "ledger.py")
    del sys.modules["opscope_ledger"]
    ledger.write(None, code, text)


def _load(name: str, packages: list[str] | None, *path: str) -> "Any":
    from importlib.util import module_from_spec, spec_from_file_location

    file = os.path.join(*path)
    loader = _Loader(name, file) if file.endswith(".py") else None
    spec = spec_from_file_location(name, file, loader=loader, submodule_search_locations=packages)
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
