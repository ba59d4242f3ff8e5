"""Fixtures shared by the tests of the record layer."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

import opscope

Run = Callable[[Coroutine[Any, Any, Any]], Any]


@pytest.fixture(autouse=True)
def no_callbacks() -> Iterator[None]:
    """Every test begins and ends with no callback registered."""
    assert not opscope.has_callbacks()
    yield
    opscope.clear_callbacks()


@pytest.fixture
def seen() -> list[str]:
    """The names of the ranges that any thread starts during the test."""
    names: list[str] = []
    opscope.add_global_callback(lambda fn: names.append(fn.name))
    return names


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """A function that runs a coroutine in a new event loop."""
    if request.param == "asyncio":
        return asyncio.run
    uvloop: Any = pytest.importorskip("uvloop")
    with opscope.debug_info():
        pass  # it may have been imported after opscope
    return uvloop.run  # type: ignore[no-any-return]


@pytest.fixture
def no_labels() -> Iterator[None]:
    """The test begins and ends without labels on its thread."""
    assert opscope.get_debug_info() == {}
    yield
    assert opscope.get_debug_info() == {}


def label() -> str | None:
    return opscope.get_debug_info("a")
