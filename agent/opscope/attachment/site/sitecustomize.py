"""What runs at a Python program's start so that it can be observed: waits for numpy, then attaches.

It prints nothing, starts nothing, and imports nothing until a framework has been imported; then
attachment/entry.py goes on. Plain syntax and type comments, because any Python may find this file.
It is run in three ways, told apart by its name:

- "sitecustomize", by way of PYTHONPATH (`opscope run`, or a payload copied into a container), where
  OPSCOPE_ATTACH=1. The user's own sitecustomize runs after it, as though this one did not exist.
- "opscope_path_file", by the .pth file that `opscope install` puts into an environment. The user's
  sitecustomize is then none of its business.
- "opscope_beside", by opscope_beside.py, where another agent's sitecustomize came first on
  PYTHONPATH and let no other run.

`opscope.attach()` uses the same ImportHook for frameworks that are not imported yet: imported under
another name, this file only defines.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec  # noqa: F401 (for type comments)
    from types import ModuleType  # noqa: F401
    from typing import Any, Callable, Sequence  # noqa: F401

FRAMEWORKS = ("numpy", "torch", "opscope.tensor")


class ImportHook(object):
    """A finder on sys.meta_path that tells when a module of `names` is being imported.

    `arriving(name)` is called just before the module runs, `arrived(name)` once it has run without
    an error; that returns the names to wait for next. Neither may raise anything but what is the
    program's. Every other import pays one look into a set. Of the awaited module's spec and loader
    nothing changes but the loader's `exec_module`, and that only until it is called; an import
    that fails is awaited again. With nothing left to wait for the hook leaves sys.meta_path.
    `opscope_entry` is set where a program's start is what it was made at.
    """

    opscope_entry = None  # type: _Entry | None

    def __init__(self, names, arriving, arrived):
        # type: (Sequence[str], Callable[[str], None], Callable[[str], Sequence[str]]) -> None
        self.waiting = set(names)
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
        if name not in self.waiting:
            return None
        spec = self._find_behind(name, path, target)
        if spec is not None and not isinstance(spec.loader, type):
            try:
                self._await(name, spec.loader)
            except (AttributeError, TypeError):
                pass  # a loader that cannot be changed: imported as ever, only unobserved
        return spec

    def _find_behind(self, name, path, target):
        # type: (str, Any, Any) -> ModuleSpec | None
        finders = list(sys.meta_path)
        for finder in finders[finders.index(self) + 1 :] if self in finders else ():
            if not hasattr(finder, "find_spec"):
                break  # one of the old kind: only importlib can ask it
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
            # Some extension modules give themselves a __name__ that is not what they are found by.
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
                # Tracebacks are to look as they would without this frame.
                error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
                raise
            if awaited and name in self.waiting:
                self.waiting.discard(name)
                self.waiting.update(self.arrived(name))
                if not self.waiting:
                    self.remove()

        loader.exec_module = exec_module


class _Entry(object):
    """attachment/entry.py, loaded when it is first needed; whatever goes wrong there ends here.

    Hooks of several opscopes may meet in one process. What each must find in the others, whatever
    their versions: `place`, `by_program`, `module` and `passed_over` of a hook's `opscope_entry`;
    `arriving(name)`, `arrived(name)` and `passed_over` in the entry.py of an opscope.
    """

    def __init__(self, by_program):
        # type: (bool) -> None
        self.place = os.path.dirname(os.path.dirname(__file__))
        self.by_program = by_program
        """Asked for with this program's environment; else by the interpreter's .pth file."""
        self.module = None  # type: Any
        self.passed_over = []  # type: list[str]
        """Where other opscopes are that would have attached."""

    def wins(self):
        # type: () -> bool
        """Whether no other opscope waits here, or one that has to give way and now has done so."""
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
            from importlib.machinery import SourceFileLoader

            path = os.path.join(self.place, "entry.py")
            if not os.path.exists(path):  # a payload, which has this file in a folder of its own
                path = os.path.join(self.place, "opscope", "attachment", "entry.py")
            module = type(sys)("opscope.attachment.entry")  # type: Any
            module.__file__ = path
            SourceFileLoader(module.__name__, path).exec_module(module)
            module.passed_over = self.passed_over
            self.module = module
        return self.module

    def arriving(self, name):
        # type: (str) -> None
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
    hook = ImportHook(FRAMEWORKS, entry.arriving, entry.arrived)
    hook.opscope_entry = entry
    for name in FRAMEWORKS:
        if name in sys.modules:
            entry.arriving(name)
            hook.waiting.discard(name)
            hook.waiting.update(entry.arrived(name))
    if hook.waiting:
        hook.install()


def _leave_path():
    # type: () -> None
    """As though this directory had never been on the search path."""
    directory = os.path.dirname(__file__)
    sys.path[:] = [entry for entry in sys.path if entry != directory]
    sys.path_importer_cache.pop(directory, None)


def _give_way():
    # type: () -> None
    """Runs the user's sitecustomize in this one's place; where there is none, neither is this.

    Its exceptions, and ImportError where it is missing, are site's to handle, as ever.
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
