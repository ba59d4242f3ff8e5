"""The nesting of ranges, computed from starts and ends; times without the tracer's cost."""

from opscope.timeline import layout
from opscope.timeline.cost import Cost, timed
from opscope.timeline.nesting import Span, spans
from opscope.timeline.reader import Trace
from tests.timeline.trace_writer import ThreadWriter, TraceWriter

FREE = Cost(0.0, 0.0)


def placed(trace: Trace, index: int = 0) -> dict[str, Span]:
    """Spans by name; forks and tasks by kind."""
    names = {layout.FORK: "fork", layout.TASK: "task"}
    return {
        names.get(span.kind) or trace.name(span.op): span
        for span in spans(trace, trace.threads[index])
    }


def parents(trace: Trace, index: int = 0) -> dict[str, str | None]:
    found = placed(trace, index)
    names: dict[Span | None, str] = {span: name for name, span in found.items()}
    return {name: names.get(span.parent) for name, span in found.items()}


def one_thread() -> tuple[TraceWriter, ThreadWriter]:
    writer = TraceWriter()
    return writer, writer.thread()


def test_ranges_lie_within_those_that_have_not_ended() -> None:
    writer, thread = one_thread()
    thread.range("a", 10, 100).range("b", 20, 40).range("c", 25, 30).range("d", 50, 60)
    thread.range("e", 110, 120)
    assert parents(writer.trace()) == {"a": None, "b": "a", "c": "b", "d": "a", "e": None}


def test_a_range_that_starts_when_another_ends_is_not_within_it() -> None:
    writer, thread = one_thread()
    thread.range("a", 10, 100).range("b", 20, 40).range("c", 40, 50).range("d", 50, 100)
    assert parents(writer.trace()) == {"a": None, "b": "a", "c": "a", "d": "a"}


def test_what_is_open_at_the_end_holds_what_came_after_it() -> None:
    writer, thread = one_thread()
    thread.range("a", 10, 0).range("b", 20, 30).range("c", 40, 0)
    found = placed(writer.trace())
    assert parents(writer.trace()) == {"a": None, "b": "a", "c": "a"}
    assert [span.end for span in found.values()] == [None, 30, None]
    assert not any(span.is_lost for span in found.values())


def test_what_was_never_closed_is_over_with_what_was_around_it() -> None:
    writer, thread = one_thread()
    thread.range("a", 10, 50).range("b", 20, 0).range("c", 60, 70)
    found = placed(writer.trace())
    assert found["b"].is_lost
    assert found["c"].parent is None


def test_a_range_whose_end_was_not_seen_holds_nothing() -> None:
    writer, thread = one_thread()
    thread.range("a", 10, 0, flags=layout.LOST).range("b", 20, 30)
    found = placed(writer.trace())
    assert found["a"].is_lost
    assert found["b"].parent is None


def test_async_and_outrunning_ranges_are_outside_of_the_nesting() -> None:
    writer, thread = one_thread()
    thread.range("a", 10, 100).range("async", 20, 500, flags=layout.ASYNC).range("b", 30, 40)
    thread.range("outruns", 50, 200).range("c", 60, 70)
    assert parents(writer.trace()) == {
        "a": None,
        "async": "a",
        "b": "a",
        "outruns": "a",
        "c": "a",
    }
    assert [name for name, span in placed(writer.trace()).items() if span.is_aside] == [
        "async",
        "outruns",
    ]


def test_tasks_hold_what_they_run_and_forks_hold_nothing() -> None:
    writer, thread = one_thread()
    thread.number(layout.FORK, 10, 20, 1).range("a", 15, 18).number(layout.TASK, 30, 60, 1)
    thread.range("b", 40, 50)
    assert parents(writer.trace()) == {"fork": None, "a": None, "task": None, "b": "task"}


def test_weak_phases_give_way_to_strong_ones_around() -> None:
    backward, forward = layout.PHASES.index("backward"), layout.PHASES.index("forward")
    writer, thread = one_thread()
    thread.range("a", 10, 100, phase=backward).range("b", 20, 90, phase=forward)
    thread.range("c", 30, 80, phase=0).range("d", 110, 120, phase=forward)
    phases = {name: layout.PHASES[s.phase] for name, s in placed(writer.trace()).items()}
    assert phases == {"a": "backward", "b": "backward", "c": "backward", "d": "forward"}


def test_allocations_belong_to_the_innermost_range() -> None:
    writer, thread = one_thread()
    thread.number(layout.ALLOCATION, 5, 5, 1).range("a", 10, 100).range("b", 20, 40)
    thread.number(layout.ALLOCATION, 30, 30, 100).number(layout.ALLOCATION, 50, 50, 7)
    assert {n: s.allocated_bytes for n, s in placed(writer.trace()).items()} == {"a": 7, "b": 100}


def times(writer: TraceWriter, cost: Cost) -> dict[str, tuple[float, float]]:
    trace = writer.trace()
    return {
        trace.name(one.span.op): (one.total, one.self_total)
        for one in timed(trace, trace.threads[0], lambda span: cost)
    }


def test_self_time_is_what_is_not_within_ranges() -> None:
    writer, thread = one_thread()
    thread.range("a", 10, 110).range("b", 20, 50).range("c", 25, 35).range("d", 60, 70)
    assert times(writer, FREE) == {"a": (100, 60), "b": (30, 20), "c": (10, 10), "d": (10, 10)}


def test_a_parent_of_a_thousand_tiny_children_takes_what_it_takes_without_the_tracer() -> None:
    """One tick of work in each child and between two; a range costs 8 ticks, 3 of them inside."""
    cost, children = Cost(8.0, 3.0), 1000
    writer, thread = one_thread()
    start = 1000
    end = start + 3 + 1 + children * (1 + 8 + 1)
    thread.range("parent", start, end)
    now = start + 1
    for _ in range(children):
        now += 1 + 2  # work, then what comes before the child's first time
        thread.range("child", now, now + 1 + 3)
        now += 1 + 3 + 3
    without = 1 + children * 2
    assert times(writer, cost) == {
        "child": (1.0, 1.0),
        "parent": (float(without), float(without - children)),
    }


def test_what_the_tracer_cost_is_taken_out_at_every_depth() -> None:
    writer, thread = one_thread()
    thread.range("a", 100, 200).range("b", 110, 180).range("c", 120, 160)
    assert times(writer, Cost(10.0, 4.0)) == {
        "c": (36.0, 36.0),
        "b": (70.0 - 4 - 10, 20.0),
        "a": (100.0 - 4 - 20, 20.0),
    }


def test_waiting_for_room_is_no_time_of_the_range_around_it() -> None:
    writer = TraceWriter()
    writer.thread().range("a", 100, 500)
    writer.thread(1, taken=(200, 350)).range("b", 400, 420)
    assert times(writer, FREE) == {"a": (250.0, 230.0), "b": (20.0, 20.0)}


def test_times_never_fall_below_nothing() -> None:
    writer, thread = one_thread()
    thread.range("a", 10, 20).range("b", 11, 12)
    assert times(writer, Cost(1000.0, 500.0)) == {"a": (0.0, 0.0), "b": (0.0, 0.0)}


def test_a_range_cut_off_has_no_time_and_those_within_it_have() -> None:
    writer, thread = one_thread()
    thread.range("a", 10, 0).range("b", 20, 30)
    assert times(writer, FREE) == {"b": (10.0, 10.0)}
