"""Finds OpenBLAS, the build of PyPI's scipy-openblas packages, and hands it to the core.

Without it matrix products still work, slowly (the core's own loop). Nothing is imported from the
package: only its library is looked for, next to where Python finds it.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from opscope import _tensor

# Package, then how its library names functions: <prefix>cblas_sgemm<suffix>.
_BUILDS = (
    ("scipy_openblas32", "scipy_", ""),
    ("scipy_openblas64", "scipy_", "64_"),
)


def load() -> str | None:
    """The path of the library the core now uses, or None where none is installed."""
    for package, prefix, suffix in _BUILDS:
        spec = find_spec(package)
        for folder in spec.submodule_search_locations or () if spec else ():
            for library in sorted(Path(folder, "lib").glob("lib*openblas*.so")):
                try:
                    _tensor.load_blas(str(library), prefix, suffix)
                except RuntimeError:
                    continue
                return str(library)
    return None
