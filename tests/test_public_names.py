"""``import opscope``: its names, their docstrings and the examples in them."""

import ast
import doctest
import importlib
import inspect
from pathlib import Path

import pytest

import opscope

RECORD = Path(__file__).parent.parent / "agent" / "opscope" / "record"
MODULES = sorted(f"opscope.record.{path.stem}" for path in RECORD.glob("[!_]*.py"))


def test_the_names_for_type_checkers_are_the_public_names() -> None:
    tree = ast.parse(Path(inspect.getfile(opscope)).read_text())
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("opscope")
        for alias in node.names
    }
    assert imported == set(opscope.__all__)


@pytest.mark.parametrize("name", opscope.__all__)
def test_every_public_name_is_there_and_says_what_it_is(name: str) -> None:
    value = getattr(opscope, name)
    if callable(value):
        assert inspect.getdoc(value)


def test_an_unknown_name_is_an_ordinary_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'opscope' has no attribute 'nothing'"):
        _ = opscope.nothing


def test_examples_in_docstrings_are_true() -> None:
    attempted = 0
    for name in MODULES:
        module = importlib.import_module(name)
        result = doctest.testmod(module, globs={**vars(module), "opscope": opscope})
        assert result.failed == 0, name
        attempted += result.attempted
    assert attempted >= 10
