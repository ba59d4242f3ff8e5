"""The programs whose coverage is measured: by name, with the packages they need and the bound.

Each module of this package has `setup()`, which imports its packages and returns one step of work:
a function that runs for some tenths of a second, the same at each call.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec

ONE_THREAD = dict.fromkeys(
    (
        *("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"),
        *("NUMEXPR_NUM_THREADS", "POLARS_MAX_THREADS", "RAYON_NUM_THREADS"),
    ),
    "1",
)


@dataclass(frozen=True)
class Program:
    name: str
    module: str
    needs: tuple[str, ...]
    """Modules that it imports."""
    bound: float | None = None
    """The least share in percent."""
    environ: Mapping[str, str] = field(default_factory=lambda: ONE_THREAD)


PROGRAMS = (
    Program("numpy", "arrays", ("numpy",), 75),
    Program("pandas", "frames", ("pandas",), 60),
    Program("sklearn", "learning", ("sklearn",), 70),
    Program("scipy", "science", ("scipy",), 75),
    Program("images", "images", ("skimage", "scipy", "cv2"), 75),
    Program("boosting", "boosting", ("xgboost", "lightgbm"), 80),
    Program("onnxruntime", "sessions", ("onnxruntime", "onnx")),
    Program("polars", "queries", ("polars",)),
    Program("jax", "traced", ("jax",)),
    Program("numba", "jitted", ("numba",)),
    Program("numexpr", "expressions", ("numexpr", "bottleneck")),
)


def missing(program: Program) -> list[str]:
    """The modules that it lacks here."""
    return [name for name in program.needs if find_spec(name) is None]
