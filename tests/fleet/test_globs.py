"""A glob of services selects what `opscope set --service` selects."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from opscope.attachment.settings_file import matches
from opscope.fleet import globs

CHARACTERS = 'ab-]["!^\\.&|~\n$é'


@pytest.mark.parametrize(
    ("glob", "selected", "left_out"),
    [
        ("web-[ab]", {"web-a", "web-b"}, {"web-c", "web-[ab]", "web-"}),
        ("web-[!a]*", {"web-b", "web-bb"}, {"web-a", "web-"}),
        ("web-[0-9]", {"web-7"}, {"web--", "web-x"}),
        ("web[", {"web["}, {"web"}),
        ("web-?", {"web-a"}, {"web-", "web-aa"}),
        ("a.b", {"a.b"}, {"axb"}),
    ],
)
def test_the_services_are_those_of_the_glob(
    glob: str, selected: set[str], left_out: set[str]
) -> None:
    of_promql = re.compile(globs.regex(glob))
    for name in selected | left_out:
        assert bool(of_promql.fullmatch(name)) == (name in selected) == matches(name, glob)


@given(st.text(CHARACTERS + "*?", max_size=8), st.text(CHARACTERS, max_size=5))
@example("[b-a]", "b")
@example("[!b-a]", "b")
@example("[]-a]", "]")
@example("[a-]", "-")
@example("[]", "[]")
@example("[!]", "[!]")
@example("[!!]", "!")
def test_it_is_the_glob_of_set(glob: str, name: str) -> None:
    expression = globs.regex(glob)
    assert bool(re.fullmatch(expression, name)) == matches(name, glob)
    # RE2 has no such groups.
    assert "(?!" not in expression and "(?>" not in expression
    if globs.is_name(glob):
        assert matches(glob, glob) and expression == re.escape(glob)
