"""Calls of BLAS and LAPACK from the C code of NumPy, SciPy and others: `blas::dgemm`.

native/include/private/blas.h describes how, and why it is safe. It sees the calls that extension
modules make through the loader, whichever library answers them: OpenBLAS, also the copies that
NumPy's and SciPy's wheels bring, MKL, BLIS. scikit-learn and others call BLAS through
`scipy.linalg.cython_blas`. Inputs of the ranges are the sizes: m, n, k for `blas::dgemm`.

Not seen: calls of less than about a microsecond (native/bridges/blas/routines.h); queries of a
workspace's size; BLAS of level 1; calls inside the libraries, such as those of dgemm by dgetrf;
libraries that contain a BLAS, such as PyTorch's; modules that are not listed here or in the setting
`extensions`.
"""

import sys
from _thread import allocate_lock
from typing import TYPE_CHECKING, Any

from opscope._native import ffi, lib
from opscope.errors import BridgeError

if TYPE_CHECKING:
    from opscope.bridges.status import BridgeStatus
    from opscope.config import Config

FRAMEWORK = "blas"

PREFIXES = ("blas", "lapack")

PROBE = ("x = numpy.ones((64, 64))", "x @ x")

_NUMPY = (
    *("numpy._core._multiarray_umath", "numpy.core._multiarray_umath"),  # NumPy 2 and 1
    *("numpy.linalg._umath_linalg", "numpy.linalg.lapack_lite"),
)

LATE_MODULES = (
    *("scipy.integrate._lsoda", "scipy.integrate._odepack", "scipy.integrate._vode"),
    *("scipy.linalg._batched_linalg", "scipy.linalg._fblas", "scipy.linalg._flapack"),
    *("scipy.linalg._flinalg", "scipy.linalg._internal_matfuncs", "scipy.linalg._interpolative"),
    *("scipy.linalg._matfuncs_expm", "scipy.linalg._matfuncs_schur_sqrtm"),
    *("scipy.linalg.cython_blas", "scipy.linalg.cython_lapack", "scipy.odr.__odrpack"),
    *("scipy.optimize._lbfgsb", "scipy.optimize._slsqplib", "scipy.optimize._trlib._trlib"),
    *("scipy.sparse.linalg._dsolve._superlu", "scipy.sparse.linalg._eigen.arpack._arpack"),
    *("scipy.sparse.linalg._eigen.arpack._arpacklib", "scipy.sparse.linalg._isolve._iterative"),
    *("scipy.sparse.linalg._propack", "scipy.sparse.linalg._propack._cpropack"),
    *("scipy.sparse.linalg._propack._dpropack", "scipy.sparse.linalg._propack._spropack"),
    *("scipy.sparse.linalg._propack._zpropack",),
)
"""Extension modules that call BLAS or LAPACK, besides those that `import numpy` imports; those that
a release lacks are never imported."""

_lock = allocate_lock()
_extensions: tuple[str, ...] = ()
_done: dict[str, str] = {}
"""The libraries of the modules that are attached, by module."""
_pointers = 0
_missed: dict[str, str] = {}
_reason = "not attached"


def configure(config: "Config") -> None:
    """Adds the modules of the setting `extensions`."""
    global _extensions
    _extensions = config.extensions


def attach() -> None:
    """Makes the calls of the listed modules visible that the program has imported; a second call
    adds new ones.

    Raises BridgeError with the reason if this machine or its loader are not as expected.
    """
    global _pointers, _reason
    with _lock:
        wanted = [name for name in (*_NUMPY, *LATE_MODULES, *_extensions) if name not in _done]
        found = {name: file for name in wanted if (file := _file(name)) is not None}
        if not found:
            return
        paths = [ffi.new("char[]", file.encode()) for file in found.values()]
        array = ffi.new("opscope_blas_library[]", [(path,) for path in paths])
        code = lib.opscope_blas_attach(array, len(paths))
        if code != lib.OPSCOPE_OK:
            _reason = _text(code)
            raise BridgeError(f"cannot replace a library's pointers: {_reason}")
        for name, native in zip(found, array, strict=True):
            _missed.pop(name, None)
            if reason := _left(native):
                _missed[name] = reason
            if not native.slots.unresolved:
                _done[name] = found[name]
            _pointers += native.slots.replaced
        _reason = "attached"


def detach() -> None:
    """Restores every pointer. Running calls finish normally; does nothing unless attached."""
    global _pointers, _reason
    with _lock:
        lib.opscope_blas_detach()
        _pointers, _reason = 0, "not attached"
        _done.clear()
        _missed.clear()


def facts() -> dict[str, str]:
    """Notes on the process: none."""
    return {}


def status() -> "BridgeStatus":
    """The bridge's status. `missed` names modules, not operators."""
    from opscope.bridges.status import BridgeStatus

    return BridgeStatus(
        attached=_reason == "attached",
        reason=_reason,
        version="",
        pointers=_pointers,
        missed=dict(_missed),
    )


def _file(name: str) -> str | None:
    """The path of an extension module that is imported."""
    file = getattr(sys.modules.get(name), "__file__", None)
    return file if isinstance(file, str) and file.endswith(".so") else None


def _left(native: Any) -> str:
    """Why pointers of a module were left alone; empty: none were."""
    if native.status != lib.OPSCOPE_OK:
        return _text(native.status)
    slots = native.slots
    reasons = {
        "are resolved at their first call": slots.unresolved,
        "lead to a library that does not export the name": slots.foreign,
        "are in memory that cannot be made writable": slots.read_only,
        "found no trampoline left": slots.full,
    }
    return ", ".join(f"{count} pointers {reason}" for reason, count in reasons.items() if count)


def _text(code: int) -> str:
    return str(ffi.string(lib.opscope_status_text(code)).decode())
