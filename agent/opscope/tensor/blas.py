"""Find OpenBLAS in PyPI's scipy-openblas packages and pass it to the core.

Without it, the core's own loop multiplies matrices, slowly. This imports nothing from the package;
it only searches for the library where Python finds the package.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from opscope import _tensor

# Package, and the affixes of its function names: <prefix>cblas_sgemm<suffix>.
_BUILDS = (
    ("scipy_openblas32", "scipy_", ""),
    ("scipy_openblas64", "scipy_", "64_"),
)


_found: list[tuple[str, str, str]] = []


def found() -> tuple[str, str, str] | None:
    """Path, prefix and suffix of the library that the core uses; None if none is installed."""
    return _found[0] if _found else None


def load() -> str | None:
    """The path of the library that the core now uses; None if none is installed."""
    for package, prefix, suffix in _BUILDS:
        spec = find_spec(package)
        for folder in spec.submodule_search_locations or () if spec else ():
            for library in sorted(Path(folder, "lib").glob("lib*openblas*.so")):
                try:
                    _tensor.load_blas(str(library), prefix, suffix)
                except RuntimeError:
                    continue
                _found[:] = [(str(library), prefix, suffix)]
                return str(library)
    return None
