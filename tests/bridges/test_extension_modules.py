"""Compiled functions of SciPy, scikit-learn and of listed modules, and ufuncs of other packages.

Programs of their own, because what counts is the state of a package at its import.
"""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opscope.bridges.extension_modules import operator_prefix

_BEFORE = """
import collections, json, sys
import numpy as np
import opscope
from opscope.config import load

names, failed = collections.Counter(), collections.Counter()

def end(fn, context):
    names[fn.name] += 1

opscope.attach()
assert opscope.attach_status().attached, opscope.attach_status()
handle = opscope.add_global_callback(end=end)
"""


# SciPy 1.18 took another library.
_LIBRARY = "pypocketfft" if find_spec("scipy.fft._pocketfft") else "pyduccfft"
_FFT = f"scipy::fft.{_LIBRARY}.c2c"


def _run(program: str, **variables: str) -> Any:
    """What the program prints last, as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", _BEFORE + program],
        env={"PATH": "/usr/bin:/bin", "OPSCOPE_SAMPLING": "1", **variables},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.fixture
def directory(tmp_path: Any) -> dict[str, str]:
    return {"OPSCOPE_DIR": str(tmp_path / "segments")}


def test_functions_of_every_kind_are_counted_and_give_their_results(
    directory: dict[str, str],
) -> None:
    """Builtins, pybind11, Cython's functions, with types and without, methods, f2py, ufuncs."""
    found = _run(
        """
from scipy import fft, linalg, ndimage, signal, sparse, spatial, special
from scipy.cluster import vq
x = np.linspace(0.0, 1.0, 64).reshape(8, 8) ** 2
sections = signal.butter(4, 0.2, output="sos")
matrix = sparse.csr_matrix(np.eye(8))
tree = spatial.cKDTree(x)
names.clear()

def work():
    return [
        fft.fft(x).real, ndimage.gaussian_filter(x, 1.0), signal.sosfilt(sections, x),
        matrix @ x[0], tree.query(x, 2)[0], special.gamma(x + 1.0), special.erf(x),
        linalg.lapack.dgetrf(x)[0], spatial.distance.cdist(x, x), vq.vq(x, x)[1],
    ]

seen = [work() for _ in range(3)]
counts = dict(names)
try:
    linalg.lapack.dgetrf("no matrix")
except ValueError as error:
    counts["error"] = str(error)
opscope.detach()
names.clear()
plain = work()
assert all(np.array_equal(a, b) for each in seen for a, b in zip(each, plain))
print(json.dumps([counts, dict(names)]))
""",
        **directory,
    )
    counts, afterwards = found
    expected = {
        _FFT: 3,
        "scipy::ndimage.correlate1d": 6,
        "scipy::signal.sosfilt": 3,
        "scipy::sparse.csr_matvec": 3,
        "scipy::spatial.cKDTree.query": 3,
        "scipy::special.gamma": 3,
        "scipy::special.erf": 3,
        "scipy::linalg.dgetrf": 3,
        "scipy::spatial.cdist_euclidean": 3,
        "scipy::cluster.vq": 3,
    }
    assert {name: counts.get(name, 0) for name in expected} == expected
    assert "convert" in counts["error"]
    assert afterwards == {}


def test_packages_that_were_imported_before_are_seen_too(directory: dict[str, str]) -> None:
    counts = _run(
        """
opscope.detach()
from scipy import fft, special
opscope.attach()
fft.fft(np.ones(4)), special.gamma(np.ones(4))
print(json.dumps(names))
""",
        **directory,
    )
    assert counts[_FFT] == counts["scipy::special.gamma"] == 1


def test_a_second_attach_sees_what_the_first_saw(directory: dict[str, str]) -> None:
    """Each function has its trampoline for ever."""
    found = _run(
        """
from scipy import cluster, fft, linalg, ndimage, optimize, signal, sparse, spatial, stats
from scipy.cluster import vq
from opscope.bridges import scipy as bridge
seen, missed = [], []
for _ in range(3):
    names.clear()
    fft.fft(np.ones(4)), ndimage.gaussian_filter(np.ones((8, 8)), 1.0)
    vq.vq(np.ones((2, 2)), np.ones((1, 2)))
    seen.append([bridge.seen(), dict(names)])
    missed.append(bridge.status().missed)
    opscope.detach()
    names.clear()
    fft.fft(np.ones(4))
    assert not names
    opscope.attach()
print(json.dumps([seen, missed]))
""",
        **directory,
    )
    seen, missed = found
    assert len(seen[0][0]) > 500
    for operators, counts in seen:
        assert operators == seen[0][0]
        assert counts[_FFT] == counts["scipy::cluster.vq"] == 1
    assert missed[0] == missed[1] == missed[2]


def test_the_name_of_a_ufunc_begins_below_an_entry_of_the_search_path(
    directory: dict[str, str], tmp_path: Path
) -> None:
    """Also if the packages are in a directory of any name, as of `pip install --target`, and
    whatever the directories above it are called."""
    packages = tmp_path / "own-packages" / "lib"
    packages.mkdir(parents=True)
    for installed in Path(np.__file__).parents[1].iterdir():
        if installed.name.startswith(("numpy", "scipy")):
            (packages / installed.name).symlink_to(installed)
    file, *names = _run(
        """
from scipy import special
np.fft.fft(np.ones(4)), special.gamma(np.ones(4))
print(json.dumps([np.__file__, *names]))
""",
        **directory,
        PYTHONPATH=f"{packages}/",
    )
    assert file.startswith(str(packages))
    assert {"numpy::fft.fft", "scipy::special.gamma"} <= set(names)
    assert {name.partition("::")[0] for name in names} == {"numpy", "scipy"}


def test_forests_are_counted_over_their_threads(directory: dict[str, str]) -> None:
    counts, missed = _run(
        """
from sklearn.ensemble import RandomForestClassifier
from opscope.bridges import sklearn as bridge
x = np.arange(400.0).reshape(100, 4) % 7
y = np.arange(100) % 3
names.clear()
forest = RandomForestClassifier(12, n_jobs=3, random_state=0).fit(x, y)
forest.predict(x)
print(json.dumps([names, bridge.status().missed]))
""",
        **directory,
    )
    assert counts["sklearn::tree.DepthFirstTreeBuilder.build"] == 12
    assert counts["sklearn::tree.Tree.predict"] == 12
    assert missed == {}


def test_listed_modules_are_seen_and_no_others(directory: dict[str, str]) -> None:
    counts = _run(
        """
from scipy import fft
from scipy.spatial import distance
distance.cdist(np.eye(3), np.eye(3)), fft.fft(np.ones(4))
names.pop("numpy::equal", None)
print(json.dumps({name: count for name, count in names.items() if name.startswith("scipy")}))
""",
        OPSCOPE_BRIDGES="numpy",
        OPSCOPE_EXTENSIONS="scipy.spatial._distance_pybind, no.such.module",
        **directory,
    )
    assert counts == {"scipy::spatial.cdist_euclidean": 1}


def test_the_interpreters_own_functions_in_a_module_are_left_alone(
    directory: dict[str, str],
) -> None:
    """CPython compares the pointer behind object.__new__ when a class is made."""
    is_same, missed = _run(
        """
import types
from opscope.bridges import extension_modules
import _ctypes as library  # any extension module with a file

module = types.ModuleType("package.module")
module.__file__ = getattr(library, "__file__", "/no/such/library.so")
module.__spec__ = None
module.make, module.get = object.__new__, {}.get
sys.modules["package.module"] = sys.modules["package"] = module
bridge = extension_modules.ExtensionModules("package", ("package.module",))
bridge.attach()

class Made:
    def __init__(self, value):
        self.value = value

print(json.dumps([Made(1).value == 1, bridge.status().missed]))
""",
        **directory,
    )
    assert is_same and missed == {}


@pytest.mark.parametrize(
    ("module", "prefix"),
    [
        ("scipy.sparse.csgraph._shortest_path", "scipy::sparse.csgraph."),
        ("sklearn.ensemble._hist_gradient_boosting.histogram", "sklearn::ensemble.histogram."),
        ("_package", "_package::"),
        ("package._core", "package::"),
    ],
)
def test_operators_are_named_after_the_public_parts_of_a_module(module: str, prefix: str) -> None:
    assert operator_prefix(module) == prefix


def test_numpy_keeps_the_names_of_its_own_ufuncs() -> None:
    from opscope.bridges import numpy as bridge

    bridge.attach()
    missed = bridge.status().missed
    seen = bridge.seen()
    bridge.detach()
    assert missed == {}
    assert "numpy::linalg.det" in seen and np.linalg.det(np.eye(2)) == 1.0
