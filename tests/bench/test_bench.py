"""The framework of the benches and the command that prints them; judges no speed.

A bench with fixed numbers, added to the real ones, represents all benches.
"""

import json
import os
from math import log
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

from opscope import bench
from opscope.bench import segment_directory
from opscope.cli.bench import command
from opscope.segments import directories

SAMPLE = """
from opscope.bench import RATIO, Result
from opscope.errors import OpscopeError

def measure(effort):
    if effort.quick:
        raise OpscopeError("no room here")
    rounds = effort.rounds_of(7)
    yield Result("sample", "cheap", 1.05, RATIO, "nothing", 1.1, rounds, interval=(1.0, 1.1))
    yield Result("sample", "dear", 180.0, "ms", None, 150.0, rounds)
    yield Result("sample", "size", 12.5, "MiB", None, None, rounds)
    yield Result("sample", "near", 1.5, RATIO, "one", (0.8, 1.2), rounds, detail={"why": "odd"})
"""


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Adds a bench in its own file; returns its name."""
    (tmp_path / "sample.py").write_text(SAMPLE)
    monkeypatch.setattr(bench, "__path__", [*bench.__path__, str(tmp_path)])
    return "sample"


def test_every_file_is_a_bench() -> None:
    files = {path.stem for path in Path(bench.__file__).parent.iterdir() if path.suffix != ".md"}
    assert bench.names() == sorted(name for name in files if not name.startswith("_"))
    assert {"attach", "record", "truth"} <= {*bench.names()}


def test_a_new_file_is_a_new_bench(sample: str) -> None:
    assert sample in bench.names()
    cases = [result.case for result in bench.measure(sample, bench.Effort())]
    assert cases == ["cheap", "dear", "size", "near"]


def test_sides_take_turns_and_the_order_alternates() -> None:
    calls: list[str] = []

    def side(name: str, value: float) -> float:
        calls.append(name)
        return value

    measured = bench.interleaved(3, {"a": lambda: side("a", 1.0), "b": lambda: side("b", 2.0)})
    assert "".join(calls) == "abbaab"
    assert measured == {"a": [1.0, 1.0, 1.0], "b": [2.0, 2.0, 2.0]}


def test_a_drift_of_the_machine_leaves_the_ratio_alone() -> None:
    drift = [1.0, 3.0, 9.0, 27.0, 81.0]
    assert bench.median_ratio([1.5 * slow for slow in drift], drift) == pytest.approx(1.5)


def test_the_interval_of_a_median_holds_it_19_times_of_20() -> None:
    assert bench.median_interval([3.0]) == (3.0, 3.0)
    assert bench.median_interval([2.0, 1.0, 3.0]) == (1.0, 3.0)
    # By the binomial distribution: P(at most 5 of 20 below the median) is 0.021, of 6 it is 0.058.
    assert bench.median_interval(range(20)) == (5, 14)
    random = Random(7)
    held = 0
    for _ in range(1000):
        low, high = bench.median_interval([random.expovariate(1.0) for _ in range(41)])
        held += low <= log(2) <= high
    assert 930 <= held <= 985


def test_rounds_asked_for_win_over_quick_and_usual() -> None:
    assert bench.Effort().rounds_of(40) == 40
    assert bench.Effort(quick=True).rounds_of(40) == 5
    assert bench.Effort(rounds=2, quick=True).rounds_of(40) == 2


def test_json_is_one_object_a_line_with_the_promised_keys(sample: str) -> None:
    done = CliRunner().invoke(command, [sample, "--json", "--rounds", "2"])
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[0] == {
        "bench": "sample",
        "case": "cheap",
        "value": 1.05,
        "unit": "ratio",
        "against": "nothing",
        "bound": 1.1,
        "rounds": 2,
        "interval": [1.0, 1.1],
    }
    assert [list(line) for line in lines[:3]] == [list(lines[0])] * 3
    assert list(lines[3]) == [*lines[0], "detail"]
    assert (lines[3]["bound"], lines[3]["detail"]) == ([0.8, 1.2], {"why": "odd"})
    assert done.exit_code == 0


def test_a_missed_bound_is_named_and_is_no_failure(sample: str) -> None:
    done = CliRunner().invoke(command, [sample])
    rows = {row.split()[1]: row for row in done.stdout.splitlines() if row.startswith("sample ")}
    assert "MISSED" in rows["dear"]
    assert "kept" in rows["cheap"]
    assert not {"MISSED", "kept"} & set(rows["size"].split())
    assert "0.8 to 1.2" in rows["near"]
    assert done.stdout.splitlines()[-1] == "2 of 3 bounds missed: sample.dear, sample.near"
    assert done.exit_code == 0


@pytest.mark.parametrize(("value", "kept"), [(0.7, False), (0.8, True), (1.2, True), (1.3, False)])
def test_a_bound_may_have_two_sides(value: float, kept: bool) -> None:
    result = bench.Result("sample", "near", value, bench.RATIO, None, (0.8, 1.2), 1)
    assert result.kept is kept


def test_only_cases_that_match_are_shown(sample: str) -> None:
    done = CliRunner().invoke(command, [sample, "--json", "--only", "*ea*"])
    assert [json.loads(line)["case"] for line in done.stdout.splitlines()] == [
        "cheap",
        "dear",
        "near",
    ]
    assert bench.Effort(only="a_*").wants("a_case")
    assert not bench.Effort(only="a_*").wants("case_a")


def test_seconds_asked_for_win_over_quick_and_usual() -> None:
    assert bench.Effort().seconds_of(30.0, 6.0) == 30.0
    assert bench.Effort(quick=True).seconds_of(30.0, 6.0) == 6.0
    assert bench.Effort(quick=True, seconds=1.5).seconds_of(30.0, 6.0) == 1.5


@pytest.mark.parametrize(
    "arguments", [["nonsense"], ["--rounds", "0"], ["--rounds", "x"], ["--seconds", "0"]]
)
def test_wrong_usage_ends_with_2_and_says_what_is_wrong(arguments: list[str]) -> None:
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 2
    assert arguments[-1] in done.stderr


def test_an_unknown_bench_is_reported_with_the_known_ones() -> None:
    assert (
        "agent, attach, coverage, graph, numpy, packages, record, scrape"
        in CliRunner().invoke(command, ["nonsense"]).stderr
    )


def test_a_bench_that_cannot_run_says_why(sample: str) -> None:
    done = CliRunner().invoke(command, [sample, "--quick"])
    assert done.exit_code == 1
    assert "sample: no room here" in done.stderr


def test_the_others_are_measured_beside_one_that_cannot_run(sample: str, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(SAMPLE.replace("if effort.quick", "if True"))
    done = CliRunner().invoke(command, ["broken", sample])
    assert done.exit_code == 1
    assert "broken: no room here" in done.stderr
    assert "cheap" in done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's agent reads all users' directories")
def test_an_agent_of_the_host_reads_no_directory_of_a_bench() -> None:
    with segment_directory() as directory:
        assert directory not in directories.find(directories.patterns("/dev/shm/opscope-0"))
