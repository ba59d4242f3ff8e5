"""`opscope bench-compare` on real programs, and the verdicts of planted rounds."""

import json
import math
import sys
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner, Result

from opscope.ci.instructions import InstructionCounter
from opscope.ci.runs import Pair, Run
from opscope.ci.verdicts import Comparison, compare
from opscope.cli._group import main
from opscope.reports.recording import Operator, Slice

PROGRAM = """
import sys
import numpy
x = numpy.ones(3)
for _ in range(int(sys.argv[1])):
    numpy.add(x, 1)
numpy.multiply(2, 3)
"""


def compared(*words: str, rounds: int = 2) -> Result:
    return CliRunner().invoke(
        main, ["bench-compare", f"--rounds={rounds}", "--warmup=0", *words], catch_exceptions=False
    )


def program(tmp_path: Path, count: int) -> list[str]:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return [sys.executable, str(path), str(count)]


def test_calls_are_exact_and_more_of_them_fail(tmp_path: Path) -> None:
    markdown = tmp_path / "summary.md"
    done = compared(
        "--json",
        "--min-share=0",
        f"--markdown={markdown}",
        "--",
        *program(tmp_path, 40),
        "--",
        *program(tmp_path, 80),
    )
    assert done.exit_code == 1, done.output
    found = json.loads(done.stdout)
    operators = {one["name"]: one for one in found["operators"]}
    assert operators["numpy::add"]["calls"] == [40, 80]
    assert operators["numpy::add"]["verdict"] == "more calls"
    assert operators["numpy::multiply"]["calls"] == [1, 1]
    assert operators["numpy::multiply"]["verdict"] == "?"
    assert found["regressions"] == ["numpy::add"]
    assert {one["name"] for one in found["measures"]} >= {"wall", "cpu"}
    assert "| numpy::add | 40.0 -> 80.0 |" in markdown.read_text()


def test_nothing_slower_is_status_0_and_few_rounds_are_named(tmp_path: Path) -> None:
    same = program(tmp_path, 40)
    done = compared("--", *same, "--", *same)
    assert done.exit_code == 0, done.output
    assert "numpy::add" in done.stdout
    assert "not judged (?): --rounds" in done.stdout


@pytest.mark.parametrize(
    "words", [[], ["--", "true"], ["--", "true", "--"], ["--", "a", "--", "b", "--", "c"]]
)
def test_anything_but_two_commands_is_a_usage_error(words: list[str]) -> None:
    done = compared(*words)
    assert done.exit_code == 2
    assert "opscope bench-compare -- A... -- B..." in done.output


def test_a_failed_run_is_no_result_and_shows_its_output() -> None:
    done = compared("--", "true", "--", "sh", "-c", "echo the reason; exit 7")
    assert done.exit_code == 2
    assert "B ended with status 7:\n  the reason" in done.output


def test_a_command_that_does_not_exist_is_named() -> None:
    done = compared("--", "no-such-command", "--", "true")
    assert done.exit_code == 2
    assert "A: cannot run no-such-command" in done.output


def test_a_run_that_takes_too_long_ends_with_all_that_it_started(tmp_path: Path) -> None:
    done = compared("--timeout=0.2", "--", "true", "--", "sh", "-c", "sleep 600 & wait")
    assert done.exit_code == 2
    assert "B ran for more than 0.2 s" in done.output


@pytest.mark.parametrize("text", ["cpu", "=5", "cpu=fast", "cpu=-1", "cpu=nan"])
def test_a_threshold_is_a_name_and_a_percentage(text: str) -> None:
    done = compared("--threshold", text, "--", "true", "--", "true")
    assert done.exit_code == 2
    assert "is not NAME=PERCENT" in done.output


def test_instructions_are_counted_or_the_reason_is_known() -> None:
    import subprocess

    with InstructionCounter() as counter:
        subprocess.run(["true"], check=True)
        found = counter.read()
    assert (found is None) == bool(counter.reason)
    assert found is None or 10_000 < found < 100_000_000


# ---- planted rounds -----------------------------------------------------------------------------


def runs(random: Random, factors: dict[str, float], rounds: int) -> tuple[Run, ...]:
    """Runs whose operators take 1 ms times their factor, with 1 % of noise."""
    return tuple(
        Run(
            1.0 * random.gauss(1, 0.02),
            1.0 * random.gauss(1, 0.02),
            None,
            {
                Operator(name, "other"): Slice(9, 9.0, time, time)
                for name, factor in factors.items()
                for time in [1e-3 * factor * random.gauss(1, 0.01)]
            },
        )
        for _ in range(rounds)
    )


def judged(
    a: dict[str, float],
    b: dict[str, float],
    rounds: int = 15,
    seed: int = 1,
    thresholds: dict[str, float] | None = None,
) -> Comparison:
    random = Random(seed)
    return compare(
        Pair(runs(random, a, rounds), runs(random, b, rounds), "none"),
        confidence=0.95,
        threshold=0.05,
        thresholds=thresholds or {},
        least_share=0.001,
    )


def verdicts(found: Comparison) -> dict[str, str]:
    return {one.name: one.verdict for one in found.operators}


def test_a_planted_change_is_found_and_nothing_else() -> None:
    same = {f"op{i}": 1.0 for i in range(8)}
    found = judged(same, same | {"op3": 1.12, "op5": 0.85})
    assert verdicts(found) == {
        **dict.fromkeys(same, "same"),
        "op3": "slower",
        "op5": "faster",
    }
    assert [one.name for one in found.regressions] == ["op3"]


def test_a_threshold_of_its_own_applies_to_its_operators() -> None:
    assert verdicts(judged({"op": 1.0}, {"op": 1.12}, thresholds={"op": 0.2})) == {"op": "same"}
    assert verdicts(judged({"op": 1.0}, {"op": 1.12}, thresholds={"o*": 0.5, "op": 0.1})) == {
        "op": "slower"
    }


@pytest.mark.parametrize(("rounds", "is_judged"), [(5, False), (6, True)])
def test_six_rounds_are_the_fewest_for_one_interval_of_95_percent(
    rounds: int, is_judged: bool
) -> None:
    found = judged({"op": 1.0}, {"op": 1.5}, rounds)
    assert found.rounds_needed == 6
    assert math.isnan(found.operators[0].low) != is_judged


def test_more_operators_need_more_rounds() -> None:
    many = {f"op{i}": 1.0 for i in range(20)}
    assert judged(many, many, 15).rounds_needed == 10


def test_false_alarms_stay_within_the_confidence() -> None:
    same = {f"op{i}": 1.0 for i in range(10)}
    wrong = sum(
        any(one.low > 1 or one.high < 1 for one in judged(same, same, 12, seed).operators)
        for seed in range(200)
    )
    assert wrong <= 200 * 0.05 + 3 * math.sqrt(200 * 0.05)


def test_new_and_gone_operators_are_named_and_not_compared() -> None:
    found = judged({"a": 1.0, "gone": 1.0}, {"a": 1.0, "new": 1.0})
    assert verdicts(found).keys() == {"a"}
    assert (found.only_a, found.only_b) == (("gone",), ("new",))
