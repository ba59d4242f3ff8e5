"""A range declares its phase of the program's work, and is counted under it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import opscope
from opscope import RecordScope, record_function
from opscope.host.host import Host
from opscope.record import recorder
from opscope.record.ranges import operator
from opscope.record.scope import PHASES, phase_number


@pytest.fixture
def phases(tmp_path: Path) -> Iterator[dict[str, set[str]]]:
    """By operator, the phases of its calls; filled in when the test reads it."""
    recorder.start(str(tmp_path))

    class Found(dict[str, set[str]]):
        def __missing__(self, name: str) -> set[str]:
            snapshot = Host([str(tmp_path)], consume=False).collect()
            return {key.phase for key in snapshot.keys if key.op == name}

    yield Found()
    recorder.stop(discard=True)


@pytest.mark.parametrize("phase", PHASES)
def test_a_range_is_counted_under_its_phase(phases: dict[str, set[str]], phase: str) -> None:
    with record_function(f"in {phase}", phase=phase):
        pass
    assert phases[f"in {phase}"] == {phase}


def test_without_a_phase_the_name_decides(phases: dict[str, set[str]]) -> None:
    for name in ("plain", "Optimizer.step#SGD.step", "enumerate(DataLoader)#x"):
        with record_function(name):
            pass
    assert phases["plain"] == {"other"}
    assert phases["Optimizer.step#SGD.step"] == {"optimizer"}
    assert phases["enumerate(DataLoader)#x"] == {"data"}


def test_one_name_may_be_used_in_several_phases(phases: dict[str, set[str]]) -> None:
    with record_function("x"):
        pass
    for phase in ("comm", "data"):
        with record_function("x", phase=phase):
            pass
    assert phases["x"] == {"other", "comm", "data"}


def test_nested_ranges_take_over_a_strong_phase(phases: dict[str, set[str]]) -> None:
    with record_function("load", phase="data"):
        with record_function("inner"):
            pass
        with record_function("step", phase="optimizer"):
            pass
    assert phases["inner"] == {"data"}
    assert phases["step"] == {"optimizer"}


def test_a_decorated_function_keeps_scope_and_phase(phases: dict[str, set[str]]) -> None:
    seen: list[RecordScope] = []
    handle = opscope.add_thread_local_callback(lambda fn: seen.append(fn.scope))

    @record_function("send", scope=RecordScope.FUNCTION, phase="comm")
    def send() -> None:
        pass

    @record_function("each", phase="data")
    def each() -> Iterator[int]:
        yield 1

    send()
    assert list(each()) == [1]
    opscope.remove_callback(handle)
    assert phases["send"] == {"comm"}
    assert phases["each"] == {"data"}
    assert seen == [RecordScope.FUNCTION, RecordScope.USER_SCOPE]


def test_an_unknown_phase_is_refused() -> None:
    with pytest.raises(ValueError, match=r"one of other, forward, .*, not 'training'"):
        record_function("x", phase="training")


def test_phases_are_numbered_as_in_c() -> None:
    for name in PHASES:
        found = operator(f"numbered {name}", (RecordScope.USER_SCOPE, phase_number(name)))
        assert found.phase == phase_number(name)
    assert phase_number("backward") == 2
