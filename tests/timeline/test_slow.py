"""Slow ranges under a span, from written traces: nesting and counts."""

from opscope.timeline import layout, slow
from opscope.timeline.slow import SlowRanges
from tests.timeline.trace_writer import ThreadWriter, TraceWriter

MS = 10**6
IDS = {"trace_id": "ab" * 16, "span_id": "cd" * 8}
OTHER_SPAN = {**IDS, "span_id": "ef" * 8}


def one_thread(**header: int) -> tuple[TraceWriter, ThreadWriter]:
    writer = TraceWriter(**header)
    return writer, writer.thread()


def find(*writers: TraceWriter, least_ns: int = 10 * MS, most: int = 100) -> SlowRanges:
    return slow.find([writer.trace() for writer in writers], least_ns, most)


def around(found: SlowRanges) -> dict[str, str | None]:
    return {one.name.name: one.around.name.name if one.around else None for one in found.ranges}


def test_a_slow_range_lies_in_the_next_slow_one_around_it() -> None:
    writer, thread = one_thread()
    thread.labels(**IDS, model_id="m")
    thread.range("a", 1 * MS, 100 * MS).range("b", 2 * MS, 50 * MS).range("c", 3 * MS, 20 * MS)
    thread.range("fast", 21 * MS, 22 * MS).range("d", 60 * MS, 70 * MS)
    found = find(writer)
    assert around(found) == {"a": None, "b": "a", "c": "b", "d": "a"}
    a = found.ranges[0]
    assert (a.trace_id, a.span_id) == (int("ab" * 16, 16), int("cd" * 8, 16))
    assert (a.start_unix_ns, a.end_unix_ns) == (10**18 + 1 * MS - 1, 10**18 + 100 * MS - 1)
    assert a.labels == (("model_id", "m"),)
    assert (found.left_out_count, found.endless_count, found.outside_count) == (0, 0, 0)


def test_the_span_that_is_active_within_a_range_is_what_ranges_are_under() -> None:
    writer, thread = one_thread()
    thread.labels(**IDS).range("a", 1 * MS, 100 * MS)
    thread.labels(**OTHER_SPAN).range("b", 2 * MS, 50 * MS).range("c", 3 * MS, 20 * MS)
    thread.labels(**IDS).range("d", 60 * MS, 80 * MS)
    found = find(writer)
    assert around(found) == {"a": None, "b": None, "c": "b", "d": "a"}
    assert [one.span_id for one in found.ranges] == [
        int(ids["span_id"], 16) for ids in (IDS, OTHER_SPAN, OTHER_SPAN, IDS)
    ]


def test_what_runs_under_no_span_is_counted() -> None:
    writer, thread = one_thread()
    thread.range("none", 1 * MS, 20 * MS).range("fast", 30 * MS, 31 * MS)
    thread.labels(trace_id="ab" * 16).range("half", 40 * MS, 60 * MS)
    thread.labels(trace_id="AB" * 16, span_id="cd" * 8).range("upper", 70 * MS, 90 * MS)
    thread.labels(trace_id="0" * 32, span_id="cd" * 8).range("zero", 100 * MS, 120 * MS)
    found = find(writer)
    assert (found.ranges, found.outside_count) == ([], 4)


def test_what_has_no_end_is_counted_and_nothing_lies_in_it() -> None:
    end = {"end_anchor_ticks": 1 + 100 * MS, "end_anchor_unix_ns": 10**18 + 100 * MS}
    writer, thread = one_thread(**end)
    thread.labels(**IDS)
    thread.range("open", 1 * MS, 0).range("in it", 2 * MS, 50 * MS).range("young", 95 * MS, 0)
    found = find(writer)
    assert around(found) == {"in it": None}
    assert found.endless_count == 1
    # The end time of a killed process is unknown.
    killed, thread = one_thread()
    thread.labels(**IDS).range("open", 1 * MS, 0)
    assert find(killed).endless_count == 1


def test_what_may_end_anywhere_has_its_place_where_it_began() -> None:
    writer, thread = one_thread()
    thread.labels(**IDS).range("a", 1 * MS, 50 * MS)
    thread.range("async", 2 * MS, 90 * MS, flags=layout.ASYNC).range("b", 3 * MS, 20 * MS)
    found = find(writer)
    assert around(found) == {"a": None, "async": "a", "b": "a"}


def test_the_longest_are_kept_and_the_others_counted() -> None:
    writer, thread = one_thread()
    thread.labels(**IDS)
    for number in range(20):
        start = (1 + 100 * number) * MS
        thread.range(f"r{number}", start, start + (10 + number) * MS)
        thread.range(f"within {number}", start, start + (10 + number) * MS)
    found = find(writer, most=3)
    assert around(found) == {"r18": None, "r19": None, "within 19": "r19"}
    assert found.left_out_count == 37


def test_all_traces_are_searched() -> None:
    writers = []
    for _ in range(2):
        writer, thread = one_thread()
        thread.labels(**IDS).range("a", 1 * MS, 50 * MS)
        other = writer.thread(2)
        other.labels(**IDS).range("b", 1 * MS, 50 * MS, flags=layout.FAILED, phase=1)
        writers.append(writer)
    found = find(*writers)
    assert [one.trace_index for one in found.ranges] == [0, 0, 1, 1]
    assert [one.thread.system_id for one in found.ranges] == [1001, 1002, 1001, 1002]
    assert [one.has_failed for one in found.ranges] == [False, True, False, True]
    assert found.ranges[1].phase == layout.PHASES[1]
