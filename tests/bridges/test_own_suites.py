"""A sample of the own tests of pandas, SciPy and scikit-learn ends attached as it does bare.

`make suites` runs all of them.
"""

from pathlib import Path

import pytest

from tests.suites.compare import differences, run

pytestmark = pytest.mark.slow

SAMPLES = {
    "pandas": (
        "pandas.tests.reshape.merge.test_merge_asof",
        "pandas.tests.groupby.aggregate.test_cython",
    ),
    "scipy": ("scipy.fft.tests.test_helper", "scipy.sparse.csgraph.tests"),
    "sklearn": ("sklearn.decomposition.tests.test_pca", "sklearn.tests.test_pipeline"),
}


@pytest.mark.parametrize("package", SAMPLES)
def test_own_tests_end_attached_as_they_do_bare(package: str, tmp_path: Path) -> None:
    arguments = ("--pyargs", *SAMPLES[package], "-x", "--maxfail=1000")
    bare = run("bare", tmp_path, arguments, 400)
    assert len(bare.outcomes) > 100
    for mode in ("observed", "windows"):
        attached = run(mode, tmp_path, arguments, 400)
        assert attached.operators > 100
        assert differences(bare, attached) == []
