"""The rows of native/bridges/VERSIONS.md, and the reports of pytest that they are made from."""

from pathlib import Path

import pytest

from tests.torch_versions import table
from tests.torch_versions.findings import Outcomes, Trial, read_report
from tests.torch_versions.wheel import on_the_cpu

REPORT = """<testsuites><testsuite>
<testcase classname="tests.bridges.test_a" name="test_good"/>
<testcase classname="tests.bridges.test_a" name="test_bad"><failure/></testcase>
<testcase classname="tests.bridges.test_a" name="test_left_out"><skipped/></testcase>
<testcase classname="tests.bridges.test_a" name="test_ends_badly"/>
<testcase classname="tests.bridges.test_a" name="test_ends_badly"><error/></testcase>
</testsuite></testsuites>"""

METADATA = """\
Metadata-Version: 2.1
Requires-Dist: filelock
Requires-Dist: nvidia-cublas-cu12==12.8.4.1; platform_system == "Linux"
Requires-Dist: cuda-toolkit[cublas]==13.0; platform_system == "Linux"
Requires-Dist: triton==3.5.1; platform_system == "Linux"
Requires-Dist: setuptools; python_version >= "3.12"
Requires-Dist: optree>=0.13.0; extra == "optree"

Requires-Dist: no header
"""

GOOD = Trial(python="3.11.7", torch="2.10.0+cu128", calls=7820)


def test_a_report_tells_how_each_test_ended() -> None:
    found = read_report(REPORT)
    assert found.passed == {"test_a::test_good"}
    assert found.failed == {"test_a::test_bad", "test_a::test_ends_badly"}
    assert found.skipped == {"test_a::test_left_out"}


def test_a_test_that_passes_the_second_time_has_passed() -> None:
    second = Outcomes(
        passed=frozenset({"test_a::test_bad"}), failed=frozenset({"test_a::test_worse"})
    )
    found = read_report(REPORT).again(second)
    assert found.passed == {"test_a::test_good", "test_a::test_bad"}
    assert found.failed == {"test_a::test_worse"}


def test_a_row_says_what_was_found() -> None:
    tests = read_report(REPORT)
    failed = "2: test_a::test_bad, test_a::test_ends_badly"
    assert table.row(GOOD, tests) == [
        *("2.10.0+cu128", "3.11.7", "attached", "-", "1", failed, "1"),
        "all 7,820 equal",
    ]
    differing = Trial(calls=9, differences={"aten::add": [3, 4]}, without="labels (no kind)")
    row = table.row(differing, Outcomes(), "not slow")
    assert row[3:] == ["labels (no kind)", "0 (not slow)", "0", "0", "differ: aten::add 3 of 4"]
    trial = Trial(reason="torch 2.10.0: not a supported version")
    assert table.is_good(table.row(GOOD, Outcomes()))
    assert not table.is_good(table.row(GOOD, tests))
    assert not table.is_good(row)
    assert not table.is_good(table.refused(trial))
    assert table.refused(trial)[2:4] == ["torch 2.10.0: not a supported version", "-"]


def test_a_new_row_takes_the_place_of_that_version_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "PATH", tmp_path / "VERSIONS.md")
    table.update(table.row(GOOD, Outcomes()))
    table.update(table.not_tried("2.9.1", "no | wheel\nat all"))
    table.update(table.not_tried("2.10.0", "no wheel"))
    table.update(table.row(GOOD, Outcomes()))
    rows = table.read(table.PATH.read_text())
    assert rows == {
        "2.9.1": table.not_tried("2.9.1", "no / wheel at all"),
        "2.10.0": table.row(GOOD, Outcomes()),
    }
    assert list(rows) == ["2.9.1", "2.10.0"]


def test_packages_for_devices_and_extras_are_not_needed_on_the_cpu() -> None:
    assert on_the_cpu(METADATA) == ["filelock", 'setuptools; python_version >= "3.12"']
