"""What the tests of the record layer share."""

from collections.abc import Iterator

import pytest

import opscope


@pytest.fixture(autouse=True)
def no_callbacks() -> Iterator[None]:
    """Every test begins and ends with no callback registered."""
    assert not opscope.has_callbacks()
    yield
    opscope.clear_callbacks()


@pytest.fixture
def seen() -> list[str]:
    """The names of the ranges that any thread starts, from here on."""
    names: list[str] = []
    opscope.add_global_callback(lambda fn: names.append(fn.name))
    return names
