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
from collections.abc import Callable, Iterable, Mapping, Sequence
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
Found = list[tuple[object, str]]
"""Objects to attach, each with its operator's name."""

_FUSED = "fused_cython_function"
_FUNCTIONS = ("builtin_function_or_method", "cython_function_or_method", _FUSED)
_METHODS = ("method_descriptor", "cython_function_or_method", "builtin_function_or_method")
_BOUND_LATER = "instancemethod"  # pybind11's methods
_owners = count(lib.OPSCOPE_EXTENSION_NUMPY + 1)


class ExtensionModules:
    """The extension modules of one package that a bridge makes visible, and its functions.

    `prefixes` gives what operators' names begin with, for modules whose names say nothing to users.
    `objects()` gives single functions of any library, each with its operator's name, and objects of
    types of functions (native/bridges/callable.h), with what the names begin with. `methods(name)`
    gives methods in Python to put outer ranges around, for each of the modules `outer`: the class
    that has the method, its name, and the operator's name, or, if that ends in "::", what it begins
    with. `is_tiny(name)` tells the operators to leave out, because they take less time than their
    range.
    """

    def __init__(
        self,
        package: str,
        modules: Sequence[str] = (),
        *,
        prefixes: Mapping[str, str] | None = None,
        objects: "Callable[[], Iterable[tuple[object, str]]] | None" = None,
        methods: "Callable[[str], Iterable[tuple[type, str, str]]]" = lambda name: (),
        outer: Sequence[str] = (),
        is_tiny: "Callable[[str], object] | None" = None,
    ) -> None:
        self._package = package
        self._modules = modules
        self._prefixes = prefixes or {}
        self._objects = objects
        self._methods = methods
        self._outer = outer
        self._is_tiny = is_tiny
        self._owner = next(_owners)
        self._lock = allocate_lock()
        self._is_attached = False
        self._awaited = dict.fromkeys(modules)
        """In the order of the list: a function that two modules have is named after the first."""
        self._awaited_outer = dict.fromkeys(outer)
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
            found: Found = []
            libraries: list[str] = []
            for name, module in _arrived(self._awaited):
                library = getattr(module, "__file__", None)
                if isinstance(library, str):  # else built into the interpreter, or no extension
                    prefix = self._prefixes.get(name, operator_prefix(name))
                    found += functions_of(module, name, prefix, self._is_tiny)
                    libraries += [library] * (len(found) - len(libraries))
            if self._objects is not None:
                found += self._objects()
                libraries += [""] * (len(found) - len(libraries))
            self._attach(found, libraries)
            for name, _ in _arrived(self._awaited_outer):
                for owner, method, operator in self._methods(name):
                    self._attach_method(owner, method, operator)

    def detach(self) -> None:
        """Restores every pointer. Running calls finish normally; does nothing unless attached."""
        with self._lock:
            lib.opscope_extension_detach(self._owner)
            self._is_attached = False
            self._awaited = dict.fromkeys(self._modules)
            self._awaited_outer = dict.fromkeys(self._outer)
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

    def _attach(self, found: Found, libraries: "list[str]") -> None:
        """All at once: each call reads the process's memory map. The program waits in its import
        for hundreds of objects, so their strings are not made one by one."""
        if not found:
            return
        statuses = ffi.new("int[]", len(found))
        code = lib.opscope_extension_attach(
            self._owner,
            len(found),
            ffi.new("uintptr_t[]", [id(subject) for subject, _ in found]),
            _strings([name for _, name in found]),
            _strings(libraries),
            statuses,
        )
        if code != lib.OPSCOPE_OK:
            raise BridgeError(f"cannot read the memory map: {_text(code)}")
        # Busy: another name of the same function.
        is_seen = (lib.OPSCOPE_OK, lib.OPSCOPE_ERR_BUSY)
        of_another_module = lib.OPSCOPE_ERR_INVALID
        for status, (_, name) in zip(ffi.unpack(statuses, len(found)), found, strict=True):
            if status in is_seen:
                self._seen.add(name)
            elif status != of_another_module:
                self._missed[name] = _text(status)


def _arrived(awaited: "dict[str, None]") -> "list[tuple[str, ModuleType]]":
    """The modules that are imported. They are not awaited any more, except those whose import goes
    on: such a module may get more functions, and the end of its import calls `attach` again."""
    found = [(name, sys.modules[name]) for name in awaited if name in sys.modules]
    for name, module in found:
        if not getattr(getattr(module, "__spec__", None), "_initializing", False):
            del awaited[name]
    return found


def _strings(texts: "list[str]") -> bytes:
    """The strings one after the other, as C reads them."""
    return "".join([text.replace("\0", " ") + "\0" for text in texts]).encode()


def functions_of(
    module: ModuleType,
    name: str,
    prefix: str,
    is_tiny: "Callable[[str], object] | None" = None,
) -> Found:
    """Each callable that C code of the module defines, with its operator's name."""
    found: Found = []
    kinds: dict[int, str] = {}
    has_callable = False
    for key, value in list(vars(module).items()):
        kind = _kind(value, kinds)
        if kind in _FUNCTIONS:
            _add(found, prefix, key, value, kind)
        elif kind == "fortran" and not has_callable:
            has_callable = True  # attaching one attaches all of its module
            found.append((value, prefix))
        elif isinstance(value, type) and getattr(value, "__module__", None) == name:
            found += methods_of(value, f"{prefix}{key}.", kinds)
    return found if is_tiny is None else [one for one in found if not is_tiny(one[1])]


def methods_of(owner: type, prefix: str, kinds: "dict[int, str] | None" = None) -> Found:
    """Each method that C code defines in the class itself, with its operator's name."""
    found: Found = []
    kinds = {} if kinds is None else kinds
    for key, method in list(vars(owner).items()):
        kind = _kind(method, kinds)
        if kind == _BOUND_LATER:
            method = method.__func__
            kind = _kind(method, kinds)
        if kind in _METHODS:
            _add(found, prefix, key, method, kind)
    return found


def _kind(value: object, kinds: "dict[int, str]") -> str:
    """The name of the object's type. Each reading of a type's name makes a string; `kinds` has them
    by the types' identities, while their objects exist."""
    of = type(value)
    kind = kinds.get(id(of))
    if kind is None:
        kind = kinds[id(of)] = of.__name__
    return kind


def _add(found: Found, prefix: str, key: str, function: Any, kind: str) -> None:
    if key.startswith("__"):
        return  # the interpreter's and Cython's own
    name = prefix + key.lstrip("_")
    if kind == _FUSED:
        # The function itself only chooses the one for the types of the arguments.
        found += [(of_types, name) for of_types in (function.__signatures__ or {}).values()]
    else:
        found.append((function, name))


def library_functions(module: str, name: str, prefix: str) -> Callable[[], Found]:
    """For `objects`: the functions of the library that ctypes has loaded as `module._LIB`, of which
    one is called `name`. All functions of a library have one type, so one shows them all."""

    def found() -> Found:
        function = getattr(getattr(sys.modules.get(module), "_LIB", None), name, None)
        return [] if function is None else [(function, prefix)]

    return found


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
