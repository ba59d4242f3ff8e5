"""A sample of the own tests of pandas, SciPy and scikit-learn ends attached as it does bare.

`make suites` runs all of them.
"""

from pathlib import Path

import pytest

from tests.suites.compare import differences, run

pytestmark = pytest.mark.slow

SAMPLES = {
    "pandas": ("pandas.tests.groupby.aggregate.test_cython",),
    "scipy": ("scipy.fft.tests.test_helper", "scipy.spatial.tests.test_hausdorff"),
    "sklearn": ("sklearn.linear_model.tests.test_omp",),
}


@pytest.mark.parametrize("package", SAMPLES)
def test_own_tests_end_attached_as_they_do_bare(package: str, tmp_path: Path) -> None:
    arguments = ("--pyargs", *SAMPLES[package])
    bare = run("bare", tmp_path, arguments, 300)
    assert len(bare.outcomes) > 20
    for mode in ("observed", "windows"):
        attached = run(mode, tmp_path, arguments, 300)
        assert attached.operators > 100, mode
        assert differences(bare, attached) == [], mode
