"""The environment of an observed program."""

from __future__ import annotations

import os

import pytest

from opscope.attachment.launch import SITE, environment


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, SITE),
        ("", SITE),
        ("/a:/b", f"{SITE}:/a:/b"),
        (":/a", f"{SITE}::/a"),
        (SITE, SITE),
        (f"/a:{SITE}", f"{SITE}:/a"),
    ],
)
def test_the_search_path_keeps_its_meaning(given: str | None, expected: str) -> None:
    environ = {} if given is None else {"PYTHONPATH": given}
    assert environment(environ)["PYTHONPATH"] == expected


def test_two_variables_change_and_no_other() -> None:
    environ = dict(os.environ)
    changed = environment(environ).items() - environ.items()
    assert {key for key, _ in changed} == {"PYTHONPATH", "OPSCOPE_ATTACH"}
    assert environ == dict(os.environ)


def test_nothing_is_importable_from_there_but_what_starts_opscope() -> None:
    assert {name for name in os.listdir(SITE) if name != "__pycache__"} == {
        "sitecustomize.py",
        "opscope_beside.py",
        "opscope_beside.egg-info",
    }
