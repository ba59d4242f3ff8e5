"""Variances of estimates: read from segments, summed, kept, and never decreasing."""

import json
import math
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opscope.host import processor_time
from opscope.host.host import Host
from opscope.host.snapshot import SeriesKey, Snapshot
from opscope.host.state import Held, State, decode, encode
from opscope.host.state_file import StateFile
from opscope.segments import layout
from opscope.segments.dictionary import Dictionary
from opscope.segments.segment import Segment, read_header, read_segment
from opscope.segments.segment_file import SegmentError
from opscope.segments.variance import COLUMNS, PhaseVariance
from tests.segments.segment_writer import Process, Range, SegmentWriter, start_of
from tests.waiting import until

approx = pytest.approx


@pytest.fixture(autouse=True)
def _is_never_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting for a processor adds to variances (tests/host/test_processor_time.py)."""
    monkeypatch.setattr(processor_time, "of_threads", lambda pid, _: None)


DATA = layout.PHASES.index("data")


def parsed(writer: SegmentWriter) -> Segment:
    raw = writer.to_bytes()

    def read(offset: int, size: int) -> bytes:
        return raw[offset : offset + size]

    return read_segment(read, read_header(read), Dictionary())


def collected(place: Path, **options: Any) -> Snapshot:
    return Host([str(place)], consume=False, **options).collect()


def off(snapshot: Snapshot, op: str) -> tuple[float, float]:
    """Variances of an operator's calls and self time, over all its series."""
    rows = [row for row, key in enumerate(snapshot.keys) if key.op == op]
    return float(snapshot.calls_variance[rows].sum()), float(snapshot.self_variance[rows].sum())


WINDOW_CALLS2 = 4e5
"""Of two windows with 200 and 600 calls."""


def windows(process: Process | None = None) -> SegmentWriter:
    """A process that is sampled in windows, in which 100 ms count for 1 s."""
    writer = SegmentWriter(process, window_ns=2_000_000, period_ns=40_000_000, created_unix_ns=1)
    writer.note("service.name", "trainer")
    writer.add([Range("add", 1e-3, 100, weight=10.0, self_s=1e-3), Range("mm", 1e-3, 4)])
    writer.variance("add", 2500.0, 0.04, owed=(900.0, 0.01))
    writer.variance(None, 9000.0, 0.09, calls_squared=WINDOW_CALLS2, owed=(4000.0, 0.04))
    return writer


def test_stated_variances_are_used(tmp_path: Path) -> None:
    windows().write(tmp_path)
    snapshot = collected(tmp_path)
    assert off(snapshot, "add") == approx((2500.0, 0.04))
    assert snapshot.phase_variances == {
        ("trainer", "forward"): approx((9000.0, 0.09, WINDOW_CALLS2, 4000.0, 0.04))
    }


def test_a_stated_variance_is_that_of_the_whole_estimate(tmp_path: Path) -> None:
    """Ranges that outlast their window are in the stated variance already."""
    writer = windows()
    writer.add([Range("add", 1e-3, 900, weight=10.0)])  # with an unknown self time
    writer.write(tmp_path)
    snapshot = collected(tmp_path)
    assert off(snapshot, "add") == approx((2500.0, 0.04))
    row = [key.op for key in snapshot.keys].index("add")
    assert float(snapshot.self_s[row]) == approx(10.0)


def test_it_is_by_phase_and_labels(tmp_path: Path) -> None:
    labels = (("model_id", "a"),)
    writer = SegmentWriter().add(
        [Range("add", 1e-3, 10, 2.0), Range("add", 1e-3, 10, 2.0, phase=DATA, labels=labels)]
    )
    writer.variance("add", 7.0)
    writer.variance("add", 5.0, phase=DATA, labels=labels)
    writer.write(tmp_path)
    found = collected(tmp_path)
    by_phase = {key.phase: found.calls_variance[row] for row, key in enumerate(found.keys)}
    assert by_phase == {"forward": 7.0, "data": 5.0}


def test_without_a_statement_it_follows_from_the_weights(tmp_path: Path) -> None:
    writer = SegmentWriter(sampling_prob_ppt=10**10)
    writer.add([Range("add", 1e-3, 50, weight=100.0, self_s=5e-4)])
    writer.write(tmp_path)
    snapshot = collected(tmp_path)
    calls, self_s2 = off(snapshot, "add")
    assert calls == approx(50 * 100**2 - 50 * 100)
    assert self_s2 == approx(5e-4**2 * calls)
    assert snapshot.phase_variances["unknown", "forward"] == approx((calls, self_s2, 0.0, 0.0, 0.0))


def test_exact_recordings_have_no_variance(tmp_path: Path) -> None:
    SegmentWriter().add([Range("add", 1e-3, n, self_s=1e-3) for n in (1, 3, 10**9)]).write(tmp_path)
    snapshot = collected(tmp_path)
    assert off(snapshot, "add") == (0.0, 0.0)
    assert np.isnan(snapshot.inexact_calls_variance).all()
    assert np.isnan(snapshot.inexact_self_variance).all()
    assert not snapshot.phase_variances


def test_unknown_self_time_has_an_unknown_variance(tmp_path: Path) -> None:
    writer = SegmentWriter().add([Range("add", 1e-3, 10, 10.0)])
    writer.variance("add", 1.0, 0.01)
    writer.write(tmp_path)
    assert math.isnan(off(collected(tmp_path), "add")[1])


def test_a_variance_without_a_cell_is_ignored_until_it_has_one() -> None:
    writer = windows()
    writer.variance("new", 1.0)
    assert len(parsed(writer).variances) == 3


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0, -math.inf, 1e300])
@pytest.mark.parametrize("field", ["calls", "self_ticks", "total_ticks", "calls_squared"])
def test_an_impossible_variance_is_corrupt(field: str, value: float) -> None:
    writer = windows()
    next(iter(writer._variances.values()))[field] = value
    with pytest.raises(SegmentError, match="variances"):
        parsed(writer)


@pytest.mark.parametrize(
    "key", [77, 2 | 77 << 32, 2 | 1 << 32 | 77 << 40], ids=["operator", "phase", "labels"]
)
def test_a_variance_of_an_unknown_key_is_corrupt(key: int) -> None:
    writer = windows()
    next(iter(writer._variances.values()))["key"] = key
    with pytest.raises(SegmentError, match="variance of an unknown"):
        parsed(writer)


def test_two_of_one_key_are_corrupt() -> None:
    writer = windows()
    first, *_ = writer._variances.values()
    writer._variances[-1] = first
    with pytest.raises(SegmentError, match="duplicate variance"):
        parsed(writer)


def test_processes_add_up_and_what_ended_stays(tmp_path: Path) -> None:
    windows().write(tmp_path)
    windows(Process(process_start=1)).write(tmp_path)
    host = Host([str(tmp_path)], consume=True)
    for _ in range(2):
        snapshot = host.collect()
        assert off(snapshot, "add") == approx((5000.0, 0.08))
        assert snapshot.phase_variances["trainer", "forward"] == approx(
            # The one that has ended owes nothing.
            (18000.0, 0.18, 2 * WINDOW_CALLS2, 4000.0, 0.04)
        )
    assert len(list(tmp_path.iterdir())) == 1


def test_series_folded_into_other_keep_them(tmp_path: Path) -> None:
    writer = SegmentWriter()
    for name in "abcd":
        writer.add([Range(name, 1e-3, 1, 10.0)])
        writer.variance(name, 3.0)
    writer.write(tmp_path)
    snapshot = collected(tmp_path, max_series=1)
    assert off(snapshot, "other")[0] == 9.0
    assert snapshot.calls_variance.sum() == 12.0


def test_they_never_decrease(tmp_path: Path) -> None:
    """W^2/n - W falls when a sampled process starts to record everything."""
    process = Process()
    SegmentWriter(process).add([Range("add", 1e-3, 10, 10.0)]).write(tmp_path)
    host = Host([str(tmp_path)], consume=False)
    before = host.collect()
    both = [Range("add", 1e-3, 10, 10.0), Range("add", 1e-3, 1000)]
    SegmentWriter(process).add(both).write(tmp_path)
    after = host.collect()
    assert off(before, "add")[0] == off(after, "add")[0] == 900.0
    assert off(after.since(before), "add")[0] == 0.0


def test_a_differences_variance_may_be_more_than_that_of_the_exported_ones(tmp_path: Path) -> None:
    """Exported ones are the largest so far; what was owed falls."""
    process = Process()
    windows(process).write(tmp_path)
    host = Host([str(tmp_path)], consume=False)
    before = host.collect()
    later = windows(process)
    later.variance("add", 2000.0, 0.04, owed=(100.0, 0.0))
    later.write(tmp_path)
    after = host.collect()
    assert off(after, "add")[0] == 2500.0
    assert off(after.since(before), "add")[0] == approx(1900.0 - 1600.0 + 900.0 + 100.0)


def agent(place: Path) -> Host:
    return Host([str(place)], consume=True, state=StateFile(str(place / "agent.state")))


def test_an_agent_that_is_started_again_goes_on_with_them(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    windows().write(tmp_path)
    windows(Process(process_start=1)).write(tmp_path)
    first = agent(tmp_path)
    before = first.collect()
    first.close()
    after = agent(tmp_path).collect()
    assert (after.variances == before.variances).all()
    assert after.phase_variances == before.phase_variances
    assert off(after, "add")[0] == 5000.0


def old_state(raw: bytes) -> bytes:
    """As written by agents without variances, and without exported total times."""
    head = struct.Struct("<16sIIQQ")
    magic, version, _, _, text_size = head.unpack_from(raw)
    body = raw[head.size :]
    facts = json.loads(body[:text_size])
    later = 16 * sum(facts.pop("variances")) + 8 * facts.pop("total")
    for name in ("services", "overhead_ns", "phase_variances", "window_calls2"):
        del facts[name]
    arrays = body[text_size : len(body) - later]
    text = json.dumps(facts).encode()
    body = text + arrays
    return head.pack(magic, version, zlib.crc32(body), len(body), len(text)) + body


def test_an_older_agents_state_is_read(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    windows(Process(process_start=1)).write(tmp_path)
    first = agent(tmp_path)
    before = first.collect()
    first.close()
    path = tmp_path / "agent.state"
    path.write_bytes(old_state(path.read_bytes()))
    second = agent(tmp_path)
    assert "series continue" in second.resumed
    after = second.collect()
    assert (after.counters == before.counters).all()
    assert not after.variances.any()


def test_a_state_has_the_exported_times_and_variances() -> None:
    state = State.none(bytes(16), 10)
    for op in ("add", "sin"):
        state.tables.series.add(SeriesKey("service", op, "", (), None, ""), 0, 0)
    held = Held(np.array([[5, 9], [2, 3]], np.uint64), np.full((2, COLUMNS), 7.0), 0)
    state.held = held
    found = decode(encode(state)).held
    assert found.times_ns.tolist() == held.times_ns.tolist()
    assert found.variances.tolist() == held.variances.tolist()


def test_a_states_variances_are_not_trusted() -> None:
    state = State.none(bytes(16), 10)
    phases = {("a", "data"): PhaseVariance(1.0, 2.0, 3.0), ("a", "other"): PhaseVariance(1.0, 0.0)}
    state.held = Held(np.zeros((0, 2), np.uint64), np.zeros((0, 2)), 7)
    state.dead.phase_variances = phases
    assert decode(encode(state)).dead.phase_variances == phases
    assert decode(encode(state)).held.overhead_ns == 7
    for bad in (math.nan, math.inf, -1.0):
        for values in ((bad, 0.0, 0.0), (0.0, bad, 0.0), (0.0, 0.0, bad)):
            state.dead.phase_variances = {("a", "data"): PhaseVariance(*values)}
            with pytest.raises(Exception, match="variances"):
                decode(encode(state))


def test_groups_add_up_and_a_difference_is_of_what_came_between(tmp_path: Path) -> None:
    process = Process()
    windows(process).write(tmp_path)
    host = Host([str(tmp_path)], consume=False)
    before = host.collect()
    later = windows(process).add([Range("add", 1e-3, 10, 10.0, self_s=1e-3)])
    later.variance("add", 2600.0, 0.05, owed=(400.0, 0.01))
    later.variance(None, 9500.0, 0.09, calls_squared=WINDOW_CALLS2 + 1e4, owed=(5000.0, 0.05))
    later.write(tmp_path)
    ran = host.collect().since(before)
    # What is not owed has grown from 1600 to 2200, and from 0.03 to 0.04; both ends owe.
    assert off(ran, "add") == approx((600.0 + 900.0 + 400.0, 0.01 + 0.01 + 0.01))
    ran_forward = ran.phase_variances["trainer", "forward"]
    assert ran_forward == approx((0.0 + 9000.0, 0.0 + 0.09, 1e4, 9000.0, 0.09))
    whole = ran.grouped(lambda key: key._replace(op="all"))
    assert whole.calls_variance.sum() == approx(ran.calls_variance.sum())


def test_services_without_number_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One pass reads all files, however long it takes.
    monkeypatch.setattr("opscope.host.budgets.SECONDS", 1e6)
    for number in range(1020):
        writer = SegmentWriter(Process(pid=2**22 + number, process_start=1), created_unix_ns=1)
        writer.note("service.name", f"s{number}")
        writer.add([Range("a", 1e-3, 1, 2.0)]).write(tmp_path)
    host = Host([str(tmp_path)], consume=False, max_series=10)
    # A pass reads for a limited time, so a busy machine needs several.
    until(lambda: len(host.collect().phase_variances) > 1000, "all files are read")
    snapshot = host.collect()
    assert len(snapshot.phase_variances) == 1001
    assert sum(one.calls for one in snapshot.phase_variances.values()) == 1020 * 2.0


def test_what_recording_costs_has_the_programs_factor() -> None:
    plain = SegmentWriter(record_cost_ps=50_000).add([Range("add", 1e-3, 1000)])
    assert parsed(plain).overhead_ns == 50_000
    plain.header["cost_factor_ppm"] = 2_700_000
    assert parsed(plain).overhead_ns == 135_000
    plain.op_id("add")
    plain.header["cost_factor_ppm"] = 10**9 + 1
    with pytest.raises(SegmentError, match="cost_factor_ppm"):
        parsed(plain)


def test_costs_beyond_measure_are_corrupt() -> None:
    writer = SegmentWriter(record_cost_ps=10**18).add([Range("add", 1e-3, 1000)])
    with pytest.raises(SegmentError, match="impossibly large costs"):
        parsed(writer)


def test_the_overhead_counter_does_not_step_back_where_a_range_costs_less(tmp_path: Path) -> None:
    place = tmp_path / "segments"
    place.mkdir(mode=0o700)
    process = Process(process_start=start_of("self"))
    found = []
    for factor in (3_000_000, 1_000_000, 2_000_000):
        header = {"record_cost_ps": 50_000, "cost_factor_ppm": factor, "created_unix_ns": 1}
        SegmentWriter(process, **header).add([Range("add", 1e-3, 1000)]).write(place)
        host = agent(place)
        found.append(host.collect().health.overhead_ns)
        host.close()
    assert found == [150_000] * 3
