"""NumPy's ufuncs and hot functions as operators: the list of what is seen, and what it is called.

One call is one range: of a ufunc (also by an operator of ndarray), of a ufunc's method, of one of
the functions and methods listed here, of indexing by an array or a list. How the calls are caught
stands in native/include/opscope/numpy.h. Not seen: arithmetic on NumPy scalars, creation of arrays,
views and basic indexing (too cheap to look at), numpy.random (Cython), ufuncs of other packages.
"""

import sys
from _thread import allocate_lock
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from opscope._native import ffi, lib
from opscope.errors import BridgeError

if TYPE_CHECKING:
    from opscope.bridges.status import BridgeStatus

FIRST_VERSION = (1, 26)
LAST_VERSION = (2, 5)
"""The newest minor version that the tests ran with; a later one is not attached to."""

LATE_MODULES = ("numpy.fft._pocketfft_umath",)
"""NumPy imports these only when asked for; attach() once more afterwards takes them in."""

# Those behind NumPy's own dispatch only. Python hashes a builtin by the pointer that is replaced
# here: np.array, np.arange and np.from* are such builtins themselves, and whoever keeps one of them
# in a set or dict would not find it again.
_FUNCTIONS = """
    _load_from_filelike _place _unique_hash _vec_string bincount busday_count busday_offset c_einsum
    concatenate copyto correlate correlate2 count_nonzero datetime_as_string dot inner interp
    interp_complex is_busday lexsort packbits putmask ravel_multi_index unpackbits unravel_index
    vdot where
""".split()

_ARRAY_METHODS = """
    argmax argmin argpartition argsort astype byteswap choose compress copy cumprod cumsum dot fill
    flatten nonzero partition put repeat resize round searchsorted sort take tobytes tofile tolist
    trace
""".split()

_UFUNC_METHODS = ("reduce", "accumulate", "reduceat", "outer", "at")


class _Target:
    """One pointer to replace. A plain class: a named tuple takes longer to make than to attach."""

    __slots__ = ("kind", "name", "subject")

    def __init__(self, kind: int, subject: object, name: str) -> None:
        self.kind = kind
        self.subject = subject
        self.name = name


_lock = allocate_lock()
_seen: list[str] = []
_missed: dict[str, str] = {}
_reason = "not attached"


def attach() -> None:
    """Makes the NumPy that the program has imported visible; repeated, takes in what came since.

    Raises BridgeError with the reason, and leaves NumPy as it is, where there is no NumPy, its
    version is unknown, or the interpreter is not laid out as expected. An operator that alone
    cannot be had is left alone and listed in ``status().missed``.
    """
    global _reason
    with _lock:
        try:
            _attach()
        except BridgeError as error:
            _reason = str(error)
            raise
        _reason = "attached"


def detach() -> None:
    """Restores every pointer. Calls in flight finish undisturbed; without attach, does nothing."""
    global _reason
    with _lock:
        _detach("not attached")


def facts() -> dict[str, str]:
    """Notes on the process: none."""
    return {}


def status() -> "BridgeStatus":
    """How the bridge stands now."""
    from opscope.bridges.status import BridgeStatus

    numpy = sys.modules.get("numpy")
    return BridgeStatus(
        attached=bool(_seen),
        reason=_reason,
        version=str(getattr(numpy, "__version__", "")),
        pointers=lib.opscope_numpy_attached_count(),
        missed=dict(_missed),
    )


def seen() -> list[str]:
    """Names of the operators whose calls are seen now, sorted.

    A method of a ufunc is listed once, as ``numpy::ufunc.reduce``; its ranges are called after the
    ufunc, as ``numpy::add.reduce``, and by the listed name for ufuncs that are not NumPy's own.
    """
    return sorted(_seen)


def _attach() -> None:
    numpy = _imported_numpy()
    targets = [target for target in _targets(numpy) if target.name not in _seen]
    names = [ffi.new("char[]", target.name.encode()) for target in targets]
    array = ffi.new("opscope_numpy_target[]", len(targets))
    for native, target, name in zip(array, targets, names, strict=True):
        native.kind = target.kind
        native.object = id(target.subject)
        native.name = name
    code = lib.opscope_numpy_attach(array, len(targets))
    if code != lib.OPSCOPE_OK:
        raise BridgeError(f"cannot read the memory map: {_text(code)}")
    for native, target in zip(array, targets, strict=True):
        if native.status == lib.OPSCOPE_OK:
            _seen.append(target.name)
        else:
            _missed[target.name] = _text(native.status)
    if "numpy::add" not in _seen:
        why = _missed.get("numpy::add", "numpy has no add")
        _detach("")
        raise BridgeError(f"unexpected layout of NumPy's ufuncs: {why}")
    sample: Any = numpy.empty((2, 3))
    lib.opscope_numpy_read_shapes(id(sample))  # else shapes of arrays stay unknown


def _detach(reason: str) -> None:
    global _reason
    lib.opscope_numpy_detach()
    _seen.clear()
    _missed.clear()
    _reason = reason


def _imported_numpy() -> ModuleType:
    numpy = sys.modules.get("numpy")
    version = getattr(numpy, "__version__", None)
    if numpy is None or version is None:
        raise BridgeError("numpy is not imported")
    if sys.implementation.name != "cpython" or "t" in sys.abiflags:
        raise BridgeError("not CPython with the GIL")
    if not FIRST_VERSION <= _minor_version(version) <= LAST_VERSION:
        raise BridgeError(f"numpy {version} is not a version known to work")
    return numpy


def _minor_version(version: str) -> tuple[int, int]:
    """(0, 0) for what is no version."""
    major, _, rest = version.partition(".")
    minor = rest.partition(".")[0]
    return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else (0, 0)


def _targets(numpy: ModuleType) -> Iterator[_Target]:
    """All there is to attach in this NumPy; what it does not have is left out."""
    core: Any = sys.modules.get("numpy._core._multiarray_umath") or sys.modules.get(
        "numpy.core._multiarray_umath"
    )
    if core is None:
        raise BridgeError("numpy has no _multiarray_umath")
    yield from _ufuncs(numpy, core, "numpy::")
    for name, prefix in (
        ("numpy.linalg._umath_linalg", "numpy::linalg."),
        ("numpy.fft._pocketfft_umath", "numpy::fft."),
    ):
        if name in sys.modules:
            yield from _ufuncs(numpy, sys.modules[name], prefix)
    for name in _UFUNC_METHODS:
        yield _Target(
            lib.OPSCOPE_NUMPY_UFUNC_METHOD, getattr(core.add, name), f"numpy::ufunc.{name}"
        )
    for name in _FUNCTIONS:
        if hasattr(core, name):
            yield _Target(lib.OPSCOPE_NUMPY_FUNCTION, getattr(core, name), f"numpy::{name}")
    array = numpy.empty(0)
    for name in _ARRAY_METHODS:
        yield _Target(lib.OPSCOPE_NUMPY_FUNCTION, getattr(array, name), f"numpy::ndarray.{name}")
    yield _Target(lib.OPSCOPE_NUMPY_GETITEM, array, "numpy::getitem_advanced")
    yield _Target(lib.OPSCOPE_NUMPY_SETITEM, array, "numpy::setitem_advanced")


def _ufuncs(numpy: ModuleType, module: ModuleType, prefix: str) -> Iterator[_Target]:
    """Each ufunc once: some have several names (``mod`` is ``remainder``)."""
    for ufunc in {id(value): value for value in vars(module).values()}.values():
        if type(ufunc) is numpy.ufunc:
            yield _Target(lib.OPSCOPE_NUMPY_UFUNC, ufunc, prefix + ufunc.__name__)


def _text(code: int) -> str:
    return str(ffi.string(lib.opscope_status_text(code)).decode())
