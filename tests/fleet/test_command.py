"""What `opscope fleet` says to people: whole numbers, and why there is nothing."""

import json

import pytest
from click.testing import CliRunner

from opscope.cli import main
from opscope.cli.fleet import _widths
from tests.fleet.test_store import answering, vector


def said(*words: str, status: int = 0) -> str:
    done = CliRunner().invoke(main, ["fleet", *words])
    assert done.exit_code == status, done.output
    return done.output


@pytest.mark.parametrize("question", ["top", "stragglers", "usage"])
def test_a_store_without_our_metrics_is_told(question: str) -> None:
    with answering(200, vector()) as store:
        assert f"{store.url} has no metrics of Opscope now" in said(question, "--url", store.url)


def test_a_service_that_is_not_there_is_told_with_those_that_are() -> None:
    answer = {"metric": {"service": "ranker"}, "value": [0, "NaN"]}
    body = json.dumps({"data": {"result": [answer, answer | {"value": [0, "0"]}]}})
    with answering(200, body) as store:
        output = said("top", "--service", "rnaker", "--url", store.url)
    assert "no service 'rnaker'; now there are: ranker" in output


@pytest.mark.parametrize("window", ["5minutes", "m", "", "15", "1.5h"])
def test_a_window_that_is_no_duration_is_refused(window: str) -> None:
    assert "no duration" in said("top", "--window", window, status=2)


@pytest.mark.parametrize(("status", "hint"), [(401, "--header"), (403, "--header"), (404, "--url")])
def test_a_refusal_says_what_to_give(status: int, hint: str) -> None:
    with answering(status, "no") as store:
        assert hint in said("top", "--url", store.url, status=1)


def test_names_are_cut_and_numbers_are_not() -> None:
    lines = [("host", "seconds", "of hosts"), ("a-rather-long-name", "1.234567", "21")]
    assert _widths(lines, [True, False, False], 100) == [18, 8, 8]
    assert _widths(lines, [True, False, False], 30) == [10, 8, 8]
    assert _widths(lines, [True, False, False], 10) == [6, 8, 8]
