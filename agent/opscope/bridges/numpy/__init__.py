"""NumPy's ufuncs and frequently used functions as operators: the list of those seen, and names.

One call is one range: of a ufunc (also through an operator of ndarray), of a ufunc's method, of a
function or method listed here, or of indexing by an array or a list. native/include/private/numpy.h
describes the interception. The ufuncs that other packages' extension modules make are seen too, and
named after the module: `scipy::special.gamma`. Not seen: arithmetic on NumPy scalars, creation of
arrays, views and basic indexing (all too cheap to record), numpy.random (Cython).
"""

import atexit
import sys
from _thread import allocate_lock
from types import ModuleType
from typing import TYPE_CHECKING, Any

from opscope._native import ffi, lib
from opscope.bridges.extension_modules import ExtensionModules
from opscope.errors import BridgeError

if TYPE_CHECKING:
    from opscope.bridges.status import BridgeStatus

FIRST_VERSION = (1, 26)
LAST_VERSION = (2, 5)
"""The newest minor version that the tests cover; the bridge does not attach to a later one."""

FRAMEWORK = "numpy"

PREFIXES = ("numpy",)

PROBE = ("x = numpy.zeros(1)", "numpy.negative(x, x)")

_FFT = "numpy.fft._pocketfft_umath"
_RANDOM = ("numpy.random._generator", "numpy.random.mtrand")

LATE_MODULES = (_FFT, *_RANDOM)
"""NumPy imports these lazily; attach() must run again after their import."""

# Only functions behind NumPy's own dispatch. Python hashes a builtin by the pointer that the bridge
# replaces: np.array, np.arange and np.from* are themselves such builtins, and a program that keeps
# one in a set or dict would not find it again.
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


# A pointer to replace: its kind, the object that holds it, and the operator's name. A plain tuple,
# since the program waits for two hundred of them in its `import numpy`.
_Target = tuple[int, object, str]

# Windows change pointers without the GIL, and must not do so while objects are being destroyed.
atexit.register(lib.opscope_numpy_freeze)

_random = ExtensionModules("numpy", _RANDOM, prefixes=dict.fromkeys(_RANDOM, "numpy::random."))

# Attaching and detaching take turns, as their C demands (native/include/private/numpy.h).
_lock = allocate_lock()
_seen: list[str] = []
_missed: dict[str, str] = {}
_reason = "not attached"


def attach() -> None:
    """Makes the NumPy that the program has imported visible; a second call adds new modules.

    Raises BridgeError with the reason, and leaves NumPy unchanged, if NumPy is not imported, its
    version is unknown, or the interpreter's layout is unexpected. A single operator that cannot be
    intercepted is left alone and listed in `status().missed`.
    """
    global _reason
    with _lock:
        try:
            if _lacks_targets():
                _attach()
        except BridgeError as error:
            _reason = str(error)
            raise
        _reason = "attached"
        _attach_random()


def detach() -> None:
    """Restores every pointer. Running calls finish normally; does nothing unless attached."""
    global _reason
    with _lock:
        _random.detach()
        _detach("not attached")


def facts() -> dict[str, str]:
    """Notes on the process: none."""
    return {}


def status() -> "BridgeStatus":
    """The bridge's status."""
    from opscope.bridges.status import BridgeStatus

    numpy = sys.modules.get("numpy")
    return BridgeStatus(
        attached=bool(_seen),
        reason=_reason,
        version=str(getattr(numpy, "__version__", "")),
        pointers=lib.opscope_numpy_attached_count(),
        missed=_missed | _random.status().missed,
    )


def seen() -> list[str]:
    """Names of the operators whose calls are visible now, sorted.

    A method of a ufunc is listed once, as `numpy::ufunc.reduce`; its ranges are named after the
    ufunc (`numpy::add.reduce`), or by the listed name for ufuncs outside of NumPy.
    """
    return sorted([*_seen, *_random.seen()])


def _lacks_targets() -> bool:
    """Whether there are operators to attach besides those of numpy.random."""
    known = {name.rpartition(".")[0] for name in _seen}
    return not known or (_FFT in sys.modules and "numpy::fft" not in known)


def _attach_random() -> None:
    """Attaches the methods of Generator and RandomState; not without the GIL."""
    if "t" in sys.abiflags:
        return
    try:
        _random.attach()
    except BridgeError as error:
        _missed["numpy::random"] = str(error)


def _attach() -> None:
    numpy = _imported_numpy()
    seen = set(_seen)
    targets = [target for target in _targets(numpy) if target[2] not in seen]
    names = [ffi.new("char[]", name.encode()) for _, _, name in targets]
    array = ffi.new(
        "opscope_numpy_target[]",
        [
            (kind, id(subject), name)
            for (kind, subject, _), name in zip(targets, names, strict=True)
        ],
    )
    code = lib.opscope_numpy_attach(array, len(targets))
    if code != lib.OPSCOPE_OK:
        raise BridgeError(f"cannot read the memory map: {_text(code)}")
    for native, (_, _, name) in zip(array, targets, strict=True):
        if native.status == lib.OPSCOPE_OK:
            _seen.append(name)
        else:
            _missed[name] = _text(native.status)
    if "numpy::add" not in _seen:
        why = _missed.get("numpy::add", "numpy has no add")
        _detach("")
        raise BridgeError(f"unexpected layout of NumPy's ufuncs: {why}")
    sample: Any = numpy.empty((2, 3))
    lib.opscope_numpy_read_shapes(id(sample))  # on failure, shapes of arrays stay unknown
    _follow_ufuncs(numpy)


def _follow_ufuncs(numpy: ModuleType) -> None:
    """Attaches the ufuncs of other packages: those that exist, and those made from now on. Not
    without the GIL, where threads may make some at the same time."""
    if "t" in sys.abiflags:
        return
    capsule = getattr(_core(), "_UFUNC_API", None)
    if lib.opscope_numpy_follow_ufuncs(id(capsule), id(numpy.add)) != lib.OPSCOPE_OK:
        _missed["ufuncs of other packages"] = "unexpected layout of NumPy's interface"
        return
    for module in list(sys.modules.values()):
        library = getattr(module, "__file__", None)
        if isinstance(library, str) and library.endswith(".so"):
            for ufunc in _distinct_ufuncs(numpy, module):
                lib.opscope_numpy_adopt_ufunc(id(ufunc), library.encode())


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
    if sys.implementation.name != "cpython":
        raise BridgeError("not CPython")
    if not FIRST_VERSION <= _minor_version(version) <= LAST_VERSION:
        raise BridgeError(f"numpy {version} is not a supported version")
    return numpy


def _minor_version(version: str) -> tuple[int, int]:
    """(0, 0) for an invalid version."""
    major, _, rest = version.partition(".")
    minor = rest.partition(".")[0]
    return (int(major), int(minor)) if major.isdigit() and minor.isdigit() else (0, 0)


def _targets(numpy: ModuleType) -> list[_Target]:
    """All pointers to replace in this NumPy, without those that it lacks."""
    core = _core()
    targets = _ufuncs(numpy, core, "numpy::")
    for name, prefix in (
        ("numpy.linalg._umath_linalg", "numpy::linalg."),
        (_FFT, "numpy::fft."),
    ):
        if name in sys.modules:
            targets += _ufuncs(numpy, sys.modules[name], prefix)
    method, function = lib.OPSCOPE_NUMPY_UFUNC_METHOD, lib.OPSCOPE_NUMPY_FUNCTION
    add, array = core.add, numpy.zeros(1)
    targets += [(method, getattr(add, name), f"numpy::ufunc.{name}") for name in _UFUNC_METHODS]
    targets += [
        (function, getattr(core, name), f"numpy::{name}")
        for name in _FUNCTIONS
        if hasattr(core, name)
    ]
    targets += [
        (function, getattr(array, name), f"numpy::ndarray.{name}") for name in _ARRAY_METHODS
    ]
    targets.append((lib.OPSCOPE_NUMPY_GETITEM, array, "numpy::getitem_advanced"))
    targets.append((lib.OPSCOPE_NUMPY_SETITEM, array, "numpy::setitem_advanced"))
    return targets


def _core() -> "Any":
    """The extension module with most of NumPy. Raises BridgeError without one."""
    core = sys.modules.get("numpy._core._multiarray_umath") or sys.modules.get(
        "numpy.core._multiarray_umath"
    )
    if core is None:
        raise BridgeError("numpy has no _multiarray_umath")
    return core


def _ufuncs(numpy: ModuleType, module: ModuleType, prefix: str) -> list[_Target]:
    kind = lib.OPSCOPE_NUMPY_UFUNC
    return [(kind, ufunc, prefix + ufunc.__name__) for ufunc in _distinct_ufuncs(numpy, module)]


def _distinct_ufuncs(numpy: ModuleType, module: ModuleType) -> "list[Any]":
    """Each ufunc once, since some have several names (`mod` is `remainder`)."""
    wanted = numpy.ufunc
    found = {id(value): value for value in vars(module).values() if type(value) is wanted}
    return list(found.values())


def _text(code: int) -> str:
    return str(ffi.string(lib.opscope_status_text(code)).decode())
