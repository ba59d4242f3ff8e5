"""Compiled functions of extension modules as operators, for bridges that list such modules.

Each function, method and Cython function of a listed module is one operator, from the module's
import on: a call from Python is one range. native/include/private/extension.h describes the
interception, and how each pointer is verified before use; one that cannot be verified is left
alone. Calls from C to C are not seen.

An operator's name consists of the package, the public parts of the module's name, and the
function's: `scipy::sparse.csgraph.dijkstra` is in the module `scipy.sparse.csgraph._shortest_path`.
"""

import sys
from _thread import allocate_lock
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from types import ModuleType
from typing import TYPE_CHECKING, Any

from opscope._native import ffi, lib
from opscope.errors import BridgeError

if TYPE_CHECKING:
    from opscope.bridges.status import BridgeStatus

_Functions = tuple[
    Callable[[], None],
    Callable[[], None],
    Callable[[], dict[str, str]],
    Callable[[], "BridgeStatus"],
    Callable[[], list[str]],
]
_Target = tuple[object, str, str | None]
"""An object, its operator's name, the path of the library that must have its code."""

_FUNCTIONS = ("builtin_function_or_method", "cython_function_or_method")
_METHODS = ("method_descriptor", "cython_function_or_method", "builtin_function_or_method")
_BOUND_LATER = "instancemethod"  # pybind11's methods
_owners = count(lib.OPSCOPE_EXTENSION_NUMPY + 1)


class ExtensionModules:
    """The extension modules of one package that a bridge makes visible, and its functions.

    `prefixes` gives what operators' names begin with, for modules whose names say nothing to users.
    `objects()` gives single functions of any library, each with its operator's name, and objects of
    types of functions (native/bridges/callable.h), with what the names begin with. `methods()`
    gives methods in Python to put outer ranges around: the class that has the method, its name, and
    the operator's name, or, if that ends in "::", what it begins with. `is_tiny(name)` tells the
    operators to leave out, because they take less time than their range.
    """

    def __init__(
        self,
        package: str,
        modules: Sequence[str] = (),
        *,
        prefixes: Mapping[str, str] | None = None,
        objects: "Callable[[], Iterable[tuple[object, str]]] | None" = None,
        methods: "Callable[[], Iterable[tuple[type, str, str]]] | None" = None,
        is_tiny: "Callable[[str], object]" = lambda name: False,
    ) -> None:
        self._package = package
        self._modules = modules
        self._prefixes = prefixes or {}
        self._objects = objects
        self._methods = methods
        self._is_tiny = is_tiny
        self._owner = next(_owners)
        self._lock = allocate_lock()
        self._is_attached = False
        self._awaited = dict.fromkeys(modules)
        """In the order of the list: a function that two modules have is named after the first."""
        self._seen: set[str] = set()
        self._missed: dict[str, str] = {}

    @property
    def functions(self) -> "_Functions":
        """attach, detach, facts, status and seen: what a bridge exports."""
        return self.attach, self.detach, self.facts, self.status, self.seen

    def attach(self) -> None:
        """Makes the modules that the program has imported visible; a second call adds new ones.

        Raises BridgeError if the package is not imported, or the memory map cannot be read.
        """
        with self._lock:
            if self._package not in sys.modules:
                raise BridgeError(f"{self._package} is not imported")
            if sys.implementation.name != "cpython" or "t" in sys.abiflags:
                raise BridgeError("not CPython with the GIL")
            self._is_attached = True
            targets: list[_Target] = []
            for name in [name for name in self._awaited if name in sys.modules]:
                module = sys.modules[name]
                # One whose import goes on may get more functions; that import ends in a call of
                # this method.
                if not getattr(module.__spec__, "_initializing", False):
                    del self._awaited[name]
                targets += self._targets_of(module, name)
            if self._objects is not None:
                targets += ((subject, of, None) for subject, of in self._objects())
            self._attach(targets)
            for owner, method, name in self._methods() if self._methods is not None else ():
                self._attach_method(owner, method, name)

    def detach(self) -> None:
        """Restores every pointer. Running calls finish normally; does nothing unless attached."""
        with self._lock:
            lib.opscope_extension_detach(self._owner)
            self._is_attached = False
            self._awaited = dict.fromkeys(self._modules)
            for known in (self._seen, self._missed):
                known.clear()

    def facts(self) -> dict[str, str]:
        """Notes on the process: none."""
        return {}

    def status(self) -> "BridgeStatus":
        """The bridge's status."""
        from opscope.bridges.status import BridgeStatus

        return BridgeStatus(
            attached=self._is_attached,
            reason="attached" if self._is_attached else "not attached",
            version=str(getattr(sys.modules.get(self._package), "__version__", "")),
            pointers=len(self._seen),
            missed=dict(self._missed),
        )

    def seen(self) -> list[str]:
        """Names of the operators whose calls are visible now, sorted; of objects of types of
        functions, only what their names begin with."""
        return sorted(self._seen)

    def _attach_method(self, owner: type, method: str, name: str) -> None:
        code = lib.opscope_outer_attach(self._owner, id(owner), method.encode(), name.encode())
        seen = f"{name}{owner.__name__}.{method}" if name.endswith("::") else name
        if code in (lib.OPSCOPE_OK, lib.OPSCOPE_ERR_BUSY):
            self._seen.add(seen)
        else:
            self._missed[seen] = _text(code)

    def _targets_of(self, module: ModuleType, name: str) -> "Iterator[_Target]":
        library = getattr(module, "__file__", None)
        if isinstance(library, str):  # else built into the interpreter, or no extension module
            prefix = self._prefixes.get(name, operator_prefix(name))
            for subject, of in functions_of(module, name, prefix):
                if not self._is_tiny(of):
                    yield subject, of, library

    def _attach(self, targets: "list[_Target]") -> None:
        """All at once: each call reads the process's memory map."""
        if not targets:
            return
        paths = {path: ffi.new("char[]", path.encode()) for _, _, path in targets if path}
        names = [ffi.new("char[]", name.encode()) for _, name, _ in targets]
        array = ffi.new(
            "opscope_extension_target[]",
            [
                (id(subject), name, paths[path] if path else ffi.NULL)
                for (subject, _, path), name in zip(targets, names, strict=True)
            ],
        )
        code = lib.opscope_extension_attach(self._owner, array, len(targets))
        if code != lib.OPSCOPE_OK:
            raise BridgeError(f"cannot read the memory map: {_text(code)}")
        for native, (_, name, _) in zip(array, targets, strict=True):
            # Busy: another name of the same function.
            if native.status in (lib.OPSCOPE_OK, lib.OPSCOPE_ERR_BUSY):
                self._seen.add(name)
            elif native.status != lib.OPSCOPE_ERR_INVALID:  # not a function of another module
                self._missed[name] = _text(native.status)


def functions_of(module: ModuleType, name: str, prefix: str) -> Iterator[tuple[object, str]]:
    """Each callable that C code of the module defines, with its operator's name."""
    has_callable = False
    for key, value in list(vars(module).items()):
        kind = type(value).__name__
        if kind in _FUNCTIONS or kind == "fused_cython_function":
            yield from _function(prefix, key, value)
        elif kind == "fortran" and not has_callable:
            has_callable = True  # attaching one attaches all of its module
            yield value, prefix
        elif isinstance(value, type) and getattr(value, "__module__", None) == name:
            yield from methods_of(value, f"{prefix}{key}.")


def library_functions(
    module: str, name: str, prefix: str
) -> Callable[[], Iterator[tuple[object, str]]]:
    """For `objects`: the functions of the library that ctypes has loaded as `module._LIB`, of which
    one is called `name`. All functions of a library have one type, so one shows them all."""

    def found() -> Iterator[tuple[object, str]]:
        function = getattr(getattr(sys.modules.get(module), "_LIB", None), name, None)
        if function is not None:
            yield function, prefix

    return found


def methods_of(owner: type, prefix: str) -> Iterator[tuple[object, str]]:
    """Each method that C code defines in the class itself, with its operator's name."""
    for key, method in list(vars(owner).items()):
        function = method.__func__ if type(method).__name__ == _BOUND_LATER else method
        if type(function).__name__ in _METHODS:
            yield from _function(prefix, key, function)


def _function(prefix: str, key: str, function: Any) -> Iterator[tuple[object, str]]:
    if key.startswith("__"):
        return  # the interpreter's and Cython's own
    name = prefix + key.lstrip("_")
    if type(function).__name__ == "fused_cython_function":
        # The function itself only chooses the one for the types of the arguments.
        for of_types in (function.__signatures__ or {}).values():
            yield of_types, name
    else:
        yield function, name


def operator_prefix(module: str) -> str:
    """What the names of a module's operators begin with."""
    package, *inner = module.split(".")
    return f"{package}::" + "".join(f"{part}." for part in inner if not part.startswith("_"))


def _text(code: int) -> str:
    return str(ffi.string(lib.opscope_status_text(code)).decode())


_listed: dict[str, ExtensionModules] = {}


def attach_listed(modules: Iterable[str]) -> list[str]:
    """Makes the modules of the setting `extensions` visible; returns those not imported yet.

    Raises BridgeError if the memory map cannot be read.
    """
    awaited = []
    for name in modules:
        if name not in sys.modules:
            awaited.append(name)
        elif name not in _listed:
            _listed[name] = ExtensionModules(name, (name,))
            _listed[name].attach()
    return awaited


def detach_listed() -> None:
    """Restores them."""
    while _listed:
        _listed.popitem()[1].detach()
