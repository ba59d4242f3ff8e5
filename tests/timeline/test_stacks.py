"""`profile(with_stack=True)`: the call sites of ranges."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import opscope
import opscope.tensor as core
from opscope.timeline import stacks


@pytest.fixture(autouse=True)
def no_callbacks() -> Iterator[None]:
    assert not opscope.has_callbacks()
    yield
    assert not opscope.has_callbacks()


def inner() -> None:
    with opscope.record_function("work"):
        core.ones([2])


def one_way() -> None:
    inner()


def other_way() -> None:
    for _ in range(2):
        inner()


def functions(stack: tuple[str, ...]) -> list[str]:
    return [site.rpartition(": ")[2] for site in stack]


def test_each_range_has_the_call_sites_above_it() -> None:
    with opscope.profile(with_stack=True) as prof:
        one_way()
        other_way()
    found = [(event.name, functions(event.stack)[:2]) for event in prof.events()]
    assert [one for one in found if one[0] == "work"] == [
        ("work", ["inner", "one_way"]),
        ("work", ["inner", "other_way"]),
        ("work", ["inner", "other_way"]),
    ]
    of_core = [event for event in prof.events() if event.name.startswith("core::")]
    assert of_core and all(functions(event.stack)[0] != "_note" for event in of_core)
    (site, *_) = [event.stack[0] for event in prof.events() if event.name == "work"]
    line = inner.__code__.co_firstlineno + 1
    assert site == f"{__file__}({line}): inner"


def test_rows_are_grouped_by_the_innermost_call_sites() -> None:
    with opscope.profile(with_stack=True) as prof:
        one_way()
        other_way()
    rows = {
        (row.key, *functions(row.stack)): row.count
        for row in prof.key_averages(group_by_stack_n=2)
        if row.key == "work"
    }
    assert rows == {("work", "inner", "one_way"): 1, ("work", "inner", "other_way"): 2}
    assert [row.stack for row in prof.key_averages() if row.key == "work"] == [()]
    table = prof.key_averages(group_by_stack_n=2).table()
    assert "Source Location" in table and "): other_way" in table
    assert "<br>" in prof.key_averages(group_by_stack_n=2)._repr_html_()


def test_threads_have_their_own_stacks() -> None:
    def on_thread() -> None:
        for _ in range(50):
            inner()

    with opscope.profile(with_stack=True) as prof:
        threads = [threading.Thread(target=on_thread) for _ in range(3)]
        for thread in threads:
            thread.start()
        one_way()
        for thread in threads:
            thread.join()
    callers = [functions(event.stack)[1] for event in prof.events() if event.name == "work"]
    assert sorted(callers) == ["on_thread"] * 150 + ["one_way"]


def test_ranges_may_outlast_the_profile() -> None:
    opened, over = threading.Event(), threading.Event()

    def on_thread() -> None:
        with opscope.record_function("on a thread"):
            opened.set()
            over.wait()

    here = opscope.record_function("here")
    thread = threading.Thread(target=on_thread)
    with opscope.profile(with_stack=True) as prof:
        here.__enter__()
        thread.start()
        opened.wait()
        one_way()
    over.set()
    thread.join()
    here.__exit__(None, None, None)
    (event,) = [event for event in prof.events() if event.name == "work"]
    assert functions(event.stack)[:2] == ["inner", "one_way"]


def test_stacks_are_as_many_as_ranges_have_room() -> None:
    limited = stacks.Stacks(1)
    limited.start()
    with opscope.record_function("a"), opscope.record_function("b"):
        pass
    limited.stop()
    assert limited._count == 1


def test_a_flame_graph_has_a_line_for_each_stack(tmp_path: Path) -> None:
    with opscope.profile(with_stack=True) as prof:
        for _ in range(200):
            one_way()
    path = tmp_path / "stacks"
    prof.export_stacks(path, "cpu_time_total")
    (line,) = [line for line in path.read_text().splitlines() if ";work " in line]
    frames, _, us = line.rpartition(" ")
    assert functions(tuple(frames.split(";")))[-3:-1] == ["one_way", "inner"]
    assert int(us) > 0


def test_without_it_there_are_none_and_no_callback() -> None:
    with opscope.profile() as prof:
        handles = opscope.has_callbacks()
        one_way()
    assert handles  # of the trace
    assert all(event.stack == () for event in prof.events())
    with pytest.raises(ValueError, match="with_stack=True"):
        prof.key_averages(group_by_stack_n=1)
    with pytest.raises(ValueError, match="with_stack=True"):
        prof.export_stacks(os.devnull)


def test_a_forked_child_takes_none() -> None:
    with opscope.profile(with_stack=True) as prof:
        child = os.fork()
        if child == 0:
            one_way()
            os._exit(int(opscope.has_callbacks()))
        _, status = os.waitpid(child, 0)
        one_way()
    assert status == 0
    assert [event.name for event in prof.events()].count("work") == 1
