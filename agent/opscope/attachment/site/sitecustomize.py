"""The code that runs at a Python program's start: it waits for the import of a framework.

It prints nothing, starts nothing, and imports nothing until the program imports a framework; then
attachment/entry.py takes over. It uses plain syntax and type comments, since any Python may run it.
Its module name shows how it was started:

- "sitecustomize": through PYTHONPATH (`opscope run`, or a payload copied into a container), with
  OPSCOPE_ATTACH=1. It then runs the user's own sitecustomize, as if this one did not exist.
- "opscope_path_file": by the .pth file that `opscope install` puts into an environment. Python runs
  the user's sitecustomize by itself.
- "opscope_beside": by opscope_beside.py, because another agent's sitecustomize came first on
  PYTHONPATH and ran no other.

`opscope.attach()` uses the same ImportHook for frameworks that are not imported yet; imported under
another name, this file only defines it.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec  # noqa: F401 (for type comments)
    from types import ModuleType  # noqa: F401
    from typing import Any, Callable, Sequence  # noqa: F401

_CORE = "opscope.tensor"  # makes ranges by itself, without a bridge
_NOT_SEARCHED_FOR = ("sitecustomize", "usercustomize")  # imported before sys.path is complete


def own_frameworks():
    # type: () -> list[str]
    """The frameworks with a bridge in this opscope: the folders in bridges/."""
    names = os.listdir(os.path.join(_package(), "bridges"))
    return [name for name in names if "." not in name and not name.startswith("_")]


def own_stamps():
    # type: () -> list[str]
    """The packages whose files this opscope can stamp: the modules in stamps/."""
    names = os.listdir(os.path.join(_package(), "stamps"))
    return [name[:-3] for name in names if name.endswith(".py") and not name.startswith("_")]


class ImportHook(object):
    """A finder on sys.meta_path that reports the import of modules in `names`.

    It calls `arriving(name)` just before the module runs, and `arrived(name)` after it has run
    without an error; the latter returns the names to wait for next. Both may raise only the
    program's own exceptions. Every other import costs one set lookup. The hook replaces the
    loader's `exec_module` until it is called, and nothing else of the module's spec and loader;
    after a failed import it waits again. With no names left the hook leaves sys.meta_path.

    The first import from a directory of sys.path outside the standard library also searches that
    directory for bridges (bridges/declared.py) and adds their frameworks to `names`.
    `opscope_entry` is set on a hook that was created at a program's start.
    """

    opscope_entry = None  # type: _Entry | None

    def __init__(self, names, arriving, arrived):
        # type: (Sequence[str], Callable[[str], None], Callable[[str], Sequence[str]]) -> None
        self.waiting = set(names)
        self.searched = set()  # type: set[str]
        self.bridges_on = None  # type: Any
        self.arriving = arriving
        self.arrived = arrived

    def install(self):
        # type: () -> None
        sys.meta_path.insert(0, self)

    def remove(self):
        # type: () -> None
        self.waiting.clear()
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(self, name, path=None, target=None):
        # type: (str, Any, Any) -> ModuleSpec | None
        if path is None and name not in sys.stdlib_module_names and name not in _NOT_SEARCHED_FOR:
            self._search()
        if name not in self.waiting:
            return None
        spec = self._find_behind(name, path, target)
        if spec is not None and not isinstance(spec.loader, type):
            try:
                self._await(name, spec.loader)
            except (AttributeError, TypeError):
                pass  # an unchangeable loader: the import works as usual, unobserved
        return spec

    def _search(self):
        # type: () -> None
        try:
            if self.bridges_on is None:
                self.bridges_on = _load("bridges", "declared").bridges_on
            found = self.bridges_on(list(sys.path), self.searched)
            self.waiting.update(name for name in found if name not in sys.modules)
        except Exception:
            self.bridges_on = lambda path, searched: ()

    def _find_behind(self, name, path, target):
        # type: (str, Any, Any) -> ModuleSpec | None
        finders = list(sys.meta_path)
        for finder in finders[finders.index(self) + 1 :] if self in finders else ():
            if not hasattr(finder, "find_spec"):
                break  # a finder without find_spec, which only importlib can call
            spec = finder.find_spec(name, path, target)  # type: ModuleSpec | None
            if spec is not None:
                return spec
        return None

    def _await(self, name, loader):
        # type: (str, Any) -> None
        own = vars(loader).get("exec_module")
        run = loader.exec_module

        def exec_module(module):
            # type: (ModuleType) -> None
            # Some extension modules set their own __name__, unlike the name they are found by.
            spec = getattr(module, "__spec__", None)
            awaited = (spec.name if spec is not None else module.__name__) == name
            if awaited and vars(loader).get("exec_module") is exec_module:
                if own is None:
                    del loader.exec_module
                else:
                    loader.exec_module = own
            awaited = awaited and name in self.waiting
            if awaited:
                self.arriving(name)
            try:
                run(module)
            except BaseException as error:
                # Tracebacks look as they would without this frame.
                error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
                raise
            if awaited and name in self.waiting:
                self.waiting.discard(name)
                self.waiting.update(self.arrived(name))
                if not self.waiting:
                    self.remove()

        loader.exec_module = exec_module


class _Entry(object):
    """Loads attachment/entry.py when first needed, and catches all its errors.

    Hooks of several opscopes can meet in one process. For that, every version must provide `place`,
    `by_program`, `module` and `passed_over` of a hook's `opscope_entry`, and `arriving(name)`,
    `arrived(name)` and `passed_over` in its entry.py.
    """

    def __init__(self, by_program):
        # type: (bool) -> None
        self.place = os.path.dirname(os.path.dirname(__file__))
        self.by_program = by_program
        """Started by this program's environment; otherwise by the interpreter's .pth file."""
        self.module = None  # type: Any
        self.passed_over = []  # type: list[str]
        """Directories of other opscopes that would have attached."""
        self.stamps = own_stamps()

    def wins(self):
        # type: () -> bool
        """Whether this hook takes the process: no other waits, or the other one has given way."""
        for finder in list(sys.meta_path):
            other = getattr(finder, "opscope_entry", None)
            if other is None:
                continue
            if not self.by_program or other.by_program or other.module is not None:
                if other.place != self.place:
                    other.passed_over.append(self.place)
                return False
            finder.remove()  # type: ignore[attr-defined]
            if other.place != self.place:
                self.passed_over.append(other.place)
        return True

    def load(self):
        # type: () -> Any
        if self.module is None:
            self.module = _load("attachment", "entry")
            self.module.passed_over = self.passed_over
        return self.module

    def arriving(self, name):
        # type: (str) -> None
        if self.module is None and name in self.stamps:
            return  # it does not begin a session; a framework that it imports does
        try:
            self.load().arriving(name)
        except Exception:
            pass

    def arrived(self, name):
        # type: (str) -> Sequence[str]
        try:
            return self.module.arrived(name)  # type: ignore[no-any-return]
        except Exception:
            return ()


def _package():
    # type: () -> str
    """The directory of the package opscope that this file belongs to."""
    place = os.path.dirname(os.path.dirname(__file__))
    beside = os.path.join(place, "opscope")  # in a payload, this file is in another folder
    return beside if os.path.isdir(beside) else os.path.dirname(place)


def _load(folder, name):
    # type: (str, str) -> Any
    """The module of that package, loaded by its path, since opscope may not be importable."""
    # Not from importlib.machinery: the program would then find that module imported.
    from _frozen_importlib_external import SourceFileLoader

    class Loader(SourceFileLoader):
        def get_code(self, fullname):
            # type: (str) -> Any
            code = SourceFileLoader.get_code(self, fullname)
            _hide(code, folder + "/" + name + ".py")
            return code

    path = os.path.join(_package(), folder, name + ".py")
    module = type(sys)("opscope." + folder + "." + name)
    module.__file__ = path
    Loader(module.__name__, path).exec_module(module)
    return module


def _hide(code, name):
    # type: (Any, str) -> None
    """Gives the code a file name that is no file; entry.py's _Loader says why."""
    try:
        from _imp import _fix_co_filename  # type: ignore[attr-defined]
    except ImportError:
        return
    _fix_co_filename(code, "<opscope/" + name + ">")


def _start(by_program):
    # type: (bool) -> None
    if sys.version_info < (3, 10):
        return
    if os.environ.get("OPSCOPE_ATTACH", "" if by_program else "1") != "1":
        return
    if os.getuid() != os.geteuid() or os.getgid() != os.getegid():
        return
    entry = _Entry(by_program)
    if not entry.wins():
        return
    _hide(sys._getframe(1).f_code, "attachment/site/sitecustomize.py")
    frameworks = own_frameworks()
    frameworks.append(_CORE)
    hook = ImportHook(frameworks + entry.stamps, entry.arriving, entry.arrived)
    hook.opscope_entry = entry
    for name in frameworks:
        if name in sys.modules:
            entry.arriving(name)
            hook.waiting.discard(name)
            hook.waiting.update(entry.arrived(name))
    if hook.waiting:
        hook.install()


def _leave_path():
    # type: () -> None
    """Removes this directory from the search path."""
    directory = os.path.dirname(__file__)
    sys.path[:] = [entry for entry in sys.path if entry != directory]
    sys.path_importer_cache.pop(directory, None)


def _give_way():
    # type: () -> None
    """Runs the user's sitecustomize in place of this one, or makes the import fail without one.

    site handles its exceptions, and ImportError if it is missing, as usual.
    """
    this = sys.modules.pop("sitecustomize")  # noqa: F841 (Python 2 would free it while it runs)
    _leave_path()
    __import__("sitecustomize")


if __name__ in ("sitecustomize", "opscope_path_file", "opscope_beside"):
    try:
        _start(by_program=__name__ != "opscope_path_file")
    except Exception:
        pass
    if __name__ == "sitecustomize":
        _give_way()
    elif __name__ == "opscope_beside":
        _leave_path()
