"""The JSON for viewers: events, arrows, times to the nanosecond, lost and cut data."""

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from opscope.timeline import chrome, layout
from opscope.timeline.chrome import Source
from opscope.timeline.clock import clocks_of
from tests.timeline import chrome_checker
from tests.timeline.trace_writer import TraceWriter


def drawn(tmp_path: Path, *writers: TraceWriter) -> dict[str, Any]:
    path = tmp_path / "trace.json"
    sources = [Source(writer.trace(), f"process {n}") for n, writer in enumerate(writers)]
    with chrome.opened(str(path)) as file:
        chrome.write(file, sources, {"opscope": "1"})
    return chrome_checker.load(path)


def named(trace: dict[str, Any], name: str) -> Any:
    (event,) = (e for e in trace["traceEvents"] if e["name"] == name and e["ph"] not in "sfe")
    return event


def test_ranges_are_complete_events_to_the_nanosecond(tmp_path: Path) -> None:
    writer = TraceWriter()
    writer.thread().range("a", 1001, 3004, phase=1).range("b", 2000, 2001)
    trace = drawn(tmp_path, writer)
    a = named(trace, "a")
    assert (a["ph"], a["cat"], a["pid"], a["tid"]) == ("X", "forward", 42, 1001)
    assert (a["ts"], a["dur"]) == (1, Decimal("2.003"))
    assert trace["baseTimeNanoseconds"] == 10**18
    assert named(trace, "b")["dur"] == Decimal("0.001")
    assert trace["displayTimeUnit"] == "ns"


def test_labels_numbers_shapes_and_failures_are_arguments(tmp_path: Path) -> None:
    writer = TraceWriter()
    writer.thread().labels(model_id="m").range(
        "a", 10, 20, sequence_nr=3, shapes=[(2, 3), None], flags=layout.FAILED
    )
    assert named(drawn(tmp_path, writer), "a")["args"] == {
        "model_id": "m",
        "Sequence number": 3,
        "Input Dims": [[2, 3], []],
        "failed": True,
    }


def test_what_is_cut_begins_and_has_no_end_and_what_is_lost_is_an_instant(tmp_path: Path) -> None:
    writer = TraceWriter()
    writer.thread().range("closed", 10, 50).range("lost", 20, 0).range("open", 60, 0)
    trace = drawn(tmp_path, writer)
    assert named(trace, "lost")["ph"] == "i"
    assert named(trace, "open")["ph"] == "B"
    assert "open at the start are not here" in trace["otherData"]["cut"]


def test_what_lies_across_others_is_asynchronous(tmp_path: Path) -> None:
    writer = TraceWriter()
    writer.thread().range("a", 10, 50).range("across", 20, 90).range("b", 60, 70)
    assert named(drawn(tmp_path, writer), "across")["ph"] == "b"


def test_arrows_lead_from_the_last_forward_of_a_number_to_the_outermost_backward(
    tmp_path: Path,
) -> None:
    writer = TraceWriter()
    one = writer.thread(1)
    one.range("peeks", 10, 20, sequence_nr=5).range("outer", 30, 60, sequence_nr=5)
    one.range("makes the node", 40, 50, sequence_nr=5).range("next", 70, 80, sequence_nr=6)
    other = writer.thread(2)
    for name, start, end, number in (
        ("evaluates", 100, 200, 5),
        ("backward", 110, 190, 5),
        ("of the next", 210, 220, 6),
        ("of nobody", 230, 240, 9),
    ):
        other.range(
            name, start, end, sequence_nr=number, forward_thread_id=1, flags=layout.BACKWARD
        )
    trace = drawn(tmp_path, writer)
    assert chrome_checker.arrows(trace["traceEvents"], chrome.FORWARD_TO_BACKWARD) == [
        ("makes the node", "evaluates"),
        ("next", "of the next"),
    ]


def test_arrows_lead_from_a_fork_to_its_task(tmp_path: Path) -> None:
    writer = TraceWriter()
    writer.thread(1).number(layout.FORK, 10, 20, 1).number(layout.FORK, 30, 40, 2)
    other = writer.thread(2)
    other.number(layout.TASK, 50, 60, 2).number(layout.TASK, 70, 80, 0)
    trace = drawn(tmp_path, writer)
    assert chrome_checker.arrows(trace["traceEvents"], chrome.FORK_TO_TASK) == [
        ("opscope::fork", "opscope::task")
    ]


def test_several_processes_lie_in_one_file_beside_each_other(tmp_path: Path) -> None:
    """The second trace states a wrong clock rate; the counter is the same."""
    first = TraceWriter(
        pid=1,
        anchor_ticks=1000,
        anchor_unix_ns=10**18,
        end_anchor_ticks=1000 + 2 * 10**10,
        end_anchor_unix_ns=10**18 + 10**10,
        ticks_per_second=2 * 10**9,
    )
    second = TraceWriter(
        pid=2,
        anchor_ticks=5000,
        anchor_unix_ns=10**18 + 2000,
        ticks_per_second=2 * 10**9 + 200_000,
    )
    last = 10**10
    first.thread().range("a", last, last + 10)
    second.thread().range("b", last, last + 10)
    trace = drawn(tmp_path, first, second)
    assert named(trace, "a")["ts"] == named(trace, "b")["ts"]
    assert {event["pid"] for event in trace["traceEvents"]} == {1, 2}


def test_first_processes_of_several_containers_stay_distinct(tmp_path: Path) -> None:
    writers = [TraceWriter(pid=1) for _ in range(3)]
    for number, writer in enumerate(writers):
        writer.thread().range(f"op{number}", 10, 20)
    trace = drawn(tmp_path, *writers)
    pids = [named(trace, f"op{number}")["pid"] for number in range(3)]
    assert len(set(pids)) == 3 and pids[0] == 1 and min(pids[1:]) > 1 << 22
    assert [one["pid"] for one in trace["otherData"]["processes"]] == pids


def test_a_process_may_have_another_pid_here_than_in_its_trace(tmp_path: Path) -> None:
    writer, path = TraceWriter(pid=1), tmp_path / "trace.json"
    writer.thread().range("a", 10, 20)
    with chrome.opened(str(path)) as file:
        chrome.write(file, [Source(writer.trace(), "p", pid=4711)], {})
    assert {event["pid"] for event in chrome_checker.load(path)["traceEvents"]} == {4711}


def test_a_wall_clock_that_was_set_does_not_bend_the_timeline() -> None:
    writer = TraceWriter(end_anchor_ticks=10**9, end_anchor_unix_ns=10**18 + 2 * 10**9)
    (clock,) = clocks_of([writer.trace().header])
    assert clock.duration_ns(1000) == 1000


def test_lost_events_are_counted_and_shown_on_their_thread(tmp_path: Path) -> None:
    writer = TraceWriter(lost_count=3)
    writer.thread(1, lost=4).range("a", 10, 20)
    trace = drawn(tmp_path, writer)
    assert trace["otherData"]["lost_events"] == 7
    assert trace["otherData"]["processes"][0]["lost_events_by_thread"] == {"1001": 4}
    assert named(trace, "4 events lost: the buffer was full")["tid"] == 1001


def test_a_path_that_ends_with_gz_is_compressed(tmp_path: Path) -> None:
    writer = TraceWriter()
    writer.thread().range('a"b\\', 10, 20)
    path = tmp_path / "trace.json.gz"
    with chrome.opened(str(path)) as file:
        assert chrome.write(file, [Source(writer.trace(), "p")], {}) == 1
    trace = json.loads(gzip.decompress(path.read_bytes()))
    assert 'a"b\\' in [event["name"] for event in trace["traceEvents"]]


@pytest.mark.parametrize("count", [1, 3])
def test_threads_and_processes_are_called_by_their_names(tmp_path: Path, count: int) -> None:
    writer = TraceWriter()
    for number in range(1, count + 1):
        writer.thread(number).range("a", 10, 20)
    events = drawn(tmp_path, writer)["traceEvents"]
    names = [e["args"]["name"] for e in events if e["name"] == "thread_name"]
    assert names == ["thread"] * count
    assert [e["args"]["name"] for e in events if e["name"] == "process_name"] == ["process 0"]
