"""The array API standard: its namespace, scikit-learn's dispatch to it, and its published tests."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opscope import tensor as ot

HERE = Path(__file__).parent
SUITE = os.environ.get("OPSCOPE_TEST_ARRAY_API", "")
NO_DTYPES = "int8,int16,uint16,uint32,uint64,complex64,complex128"


def namespace() -> Any:
    return ot.zeros(1).__array_namespace__(api_version="2024.12")


def test_the_namespace_is_found_from_an_array() -> None:
    xp = namespace()
    assert xp.__array_api_version__ == "2024.12"
    with pytest.raises(ValueError, match=r"no version '1999\.1'"):
        ot.zeros(1).__array_namespace__(api_version="1999.1")
    info = xp.__array_namespace_info__()
    assert list(info.dtypes(kind="real floating")) == ["float32", "float64"]
    assert info.default_device() == ot.zeros(1).device
    assert ot.zeros(1).to_device(info.default_device()).shape == (1,)


def test_functions_have_the_arguments_of_the_standard() -> None:
    xp = namespace()
    x = xp.asarray([[3.0, 1.0], [2.0, 3.0]])
    assert xp.sum(x, axis=0, keepdims=True).tolist() == [[5.0, 4.0]]
    assert xp.sum(xp.asarray([True, True])).item() == 2
    assert xp.std(x, correction=1.0).item() == pytest.approx(np.std(x.numpy(), ddof=1))
    assert xp.unique_all(x).indices.tolist() == [1, 2, 0]
    assert xp.unique_all(x).counts.tolist() == [1, 1, 2]
    assert xp.cumulative_sum(x, axis=1, include_initial=True).tolist() == [[0, 3, 4], [0, 2, 5]]
    assert xp.nextafter(xp.asarray(1.0), xp.asarray(2.0)).item() == np.nextafter(
        np.float32(1), np.float32(2)
    )
    assert [len(part) for part in xp.meshgrid(xp.arange(2), xp.arange(3))] == [3, 3]
    assert xp.result_type(xp.float32, xp.float64) is xp.float64
    assert xp.isdtype(xp.int32, ("bool", "integral"))
    assert xp.astype(x, xp.int64).dtype is xp.int64
    assert xp.linalg.vecdot(x, x).tolist() == [10.0, 13.0]


SKLEARN = """
import os
os.environ["SCIPY_ARRAY_API"] = "1"
import numpy as np
import sklearn
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from opscope import tensor as ot

random = np.random.default_rng(0)
x = random.normal(size=(60, 5)) @ np.diag([3.0, 2.0, 1.0, 0.5, 0.1])
y = (x[:, 0] > 0).astype(np.int64) + (x[:, 1] > 1)
for solver in ("full", "covariance_eigh", "randomized"):
    for whiten in (False, True):
        options = dict(n_components=3, svd_solver=solver, whiten=whiten, random_state=0)
        options |= dict(power_iteration_normalizer="QR") if solver == "randomized" else {}
        expected = PCA(**options).fit(x)
        with sklearn.config_context(array_api_dispatch=True):
            pca = PCA(**options).fit(ot.tensor(x))
            made = pca.transform(ot.tensor(x))
        assert isinstance(made, ot.Tensor) and isinstance(pca.components_, ot.Tensor)
        np.testing.assert_allclose(pca.components_.numpy(), expected.components_, atol=1e-6)
        np.testing.assert_allclose(made.numpy(), expected.transform(x), atol=1e-6)
expected = LinearDiscriminantAnalysis().fit(x, y)
with sklearn.config_context(array_api_dispatch=True):
    lda = LinearDiscriminantAnalysis().fit(ot.tensor(x), ot.tensor(y))
    classes = lda.predict(ot.tensor(x))
    shares = lda.predict_proba(ot.tensor(x))
assert isinstance(classes, ot.Tensor) and isinstance(lda.coef_, ot.Tensor)
np.testing.assert_array_equal(classes.numpy(), expected.predict(x))
np.testing.assert_allclose(shares.numpy(), expected.predict_proba(x), atol=1e-6)
"""


def test_scikit_learn_dispatches_to_core_tensors() -> None:
    subprocess.run([sys.executable, "-c", SKLEARN], check=True, timeout=120)


@pytest.mark.external
@pytest.mark.skipif(not SUITE, reason="OPSCOPE_TEST_ARRAY_API is no checkout of array-api-tests")
def test_the_published_suite_passes(tmp_path: Path) -> None:
    checkout = tmp_path / "suite"
    shutil.copytree(SUITE, checkout)
    helpers = checkout / "array_api_tests" / "dtype_helpers.py"
    # The suite cannot be imported without a complex dtype.
    text = helpers.read_text()
    line = "for dt in complex_dtypes], key"
    helpers.write_text(text.replace(line, "for dt in complex_dtypes] or [(None, 0)], key"))
    skips = [
        line
        for line in (HERE / "array_api_skips.txt").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    (checkout / "opscope_skips.py").write_text(
        "from fnmatch import fnmatchcase\n"
        f"SKIPS = {skips!r}\n"
        "def plain(text): return text.replace('[', '<').replace(']', '>')\n"
        "def pytest_collection_modifyitems(items):\n"
        "    items[:] = [i for i in items if not any(\n"
        "        fnmatchcase(plain(i.nodeid), plain(s)) for s in SKIPS)]\n"
    )
    ignored = [f"--ignore={skip}" for skip in skips if skip.endswith(".py")]
    subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "array_api_tests", "--max-examples=20"),
            *("-p", "opscope_skips", "-p", "no:cacheprovider", *ignored),
        ],
        cwd=checkout,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(checkout), os.environ.get("PYTHONPATH", "")]),
            "ARRAY_API_TESTS_MODULE": "opscope.tensor.array_api",
            "ARRAY_API_TESTS_VERSION": "2024.12",
            "ARRAY_API_TESTS_SKIP_DTYPES": NO_DTYPES,
        },
        check=True,
        timeout=450,
    )
