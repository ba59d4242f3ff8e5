"""The output of `opscope fleet`: whole numbers, and the reason for an empty answer."""

import json

import pytest
from click.testing import CliRunner

from opscope.cli._group import main
from opscope.cli.fleet import _widths
from tests.fleet.test_store import answering, vector


def said(*words: str, status: int = 0) -> str:
    done = CliRunner().invoke(main, ["fleet", *words])
    assert done.exit_code == status, done.output
    return done.output


@pytest.mark.parametrize("question", ["top", "stragglers", "usage"])
def test_a_store_without_opscopes_metrics_is_reported(question: str) -> None:
    with answering(200, vector()) as store:
        assert f"{store.url} has no current metrics of Opscope" in said(
            question, "--url", store.url
        )


def test_an_unknown_service_is_reported_with_the_known_ones() -> None:
    answer = {"metric": {"service_name": "ranker"}, "value": [0, "NaN"]}
    body = json.dumps({"data": {"result": [answer, answer | {"value": [0, "0"]}]}})
    with answering(200, body) as store:
        output = said("top", "--service", "rnaker", "--url", store.url)
    assert "no service 'rnaker'; known: ranker" in output


@pytest.mark.parametrize("window", ["5minutes", "m", "", "15", "1.5h"])
def test_a_window_that_is_no_duration_is_refused(window: str) -> None:
    assert "not a PromQL duration" in said("top", "--window", window, status=2)


@pytest.mark.parametrize(("status", "hint"), [(401, "--header"), (403, "--header"), (404, "--url")])
def test_a_refusal_has_a_remedy(status: int, hint: str) -> None:
    with answering(status, "no") as store:
        assert hint in said("top", "--url", store.url, status=1)


def test_names_are_cut_and_numbers_are_not() -> None:
    lines = [("host", "seconds", "of hosts"), ("a-rather-long-name", "1.234567", "21")]
    assert _widths(lines, [True, False, False], 100) == [18, 8, 8]
    assert _widths(lines, [True, False, False], 30) == [10, 8, 8]
    assert _widths(lines, [True, False, False], 10) == [6, 8, 8]
