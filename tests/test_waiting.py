"""Waiting ends with an error after its limit, in tests and in the programs they start."""

import subprocess
import sys

import pytest

from tests.waiting import UNTIL, until


def test_the_first_true_value_is_returned() -> None:
    values = iter([0, "", "found"])
    assert until(lambda: next(values), "a value") == "found"


def test_after_the_limit_the_error_names_what_is_missing() -> None:
    with pytest.raises(AssertionError, match="not within 0 s: a value"):
        until(lambda: None, "a value", limit_s=0.0)


def test_a_program_that_waits_in_vain_ends_with_the_error() -> None:
    program = UNTIL + "until(lambda: None, 'a value', limit_s=0.0)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.endswith("AssertionError: not within 0 s: a value\n")
