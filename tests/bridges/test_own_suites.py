"""A sample of the own tests of pandas, SciPy and scikit-learn ends attached as it does bare.

`make suites` runs all of them.
"""

from pathlib import Path

import pytest

from tests.suites.compare import differences, run

pytestmark = pytest.mark.slow

SAMPLES = (
    "pandas.tests.groupby.aggregate.test_cython",
    "scipy.fft.tests.test_helper",
    "scipy.spatial.tests.test_hausdorff",
    "sklearn.linear_model.tests.test_omp",
)


def test_own_tests_end_attached_as_they_do_bare(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All in one process: starting them and importing the packages takes most of the time."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    arguments = ("--pyargs", *SAMPLES)
    bare = run("bare", tmp_path, arguments, 300)
    assert len(bare.outcomes) > 220
    for mode in ("observed", "windows"):
        attached = run(mode, tmp_path, arguments, 300)
        assert attached.operators > 300, mode
        assert differences(bare, attached) == [], mode


def test_a_suite_in_which_nothing_runs_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "test_broken.py").write_text("import a_module_that_is_not_installed\n")
    broken = run("bare", tmp_path, ("test_broken.py",), 60)
    assert broken.outcomes == {"test_broken.py collect": "failed"}
    (tmp_path / "bare" / "test_empty.py").write_text("")
    with pytest.raises(AssertionError, match="no test ran"):
        run("bare", tmp_path, ("test_empty.py",), 60)
