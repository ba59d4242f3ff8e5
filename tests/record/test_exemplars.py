"""Slow ranges in a trace become exemplars in the segment, and on the agent's pages."""

import subprocess
import sys
import time
from pathlib import Path

from opscope.host.host import Host
from opscope.host.snapshot import Snapshot

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"

PROGRAM = """
import sys, time
import opscope
from opscope.record import recorder

recorder.start(sys.argv[1])
def work(seconds, **labels):
    with opscope.debug_info(**labels), opscope.record_function("core::work"):
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            pass
def fast():
    # So many that those which the machine holds up are less than one in a hundred.
    for _ in range(3000):
        work(0)
fast()
{}
"""


def collected(directory: Path, code: str) -> Snapshot:
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(code), str(directory)], check=False)
    assert done.returncode == 0
    return Host([str(directory)], consume=False).collect()


def test_a_slow_range_in_a_trace_is_kept_with_its_time(tmp_path: Path) -> None:
    before_ns = time.time_ns()
    # A range as slow as the one before it is sometimes not kept; three in a row are unlikely.
    code = f"""
for _ in range(3):
    work(0.05, trace_id={TRACE!r}, span_id={SPAN!r})
    fast()
"""
    snapshot = collected(tmp_path, code)
    (row,) = snapshot.exemplars
    assert snapshot.keys[row].op == "core::work"
    for one in snapshot.exemplars[row]:
        assert (one.trace_id, one.span_id) == (TRACE, SPAN)
        # Two clocks.
        assert 0.0499 <= one.duration_s < 300
        assert before_ns < one.time_unix_ns < time.time_ns()


def test_other_ranges_than_slow_ones_in_a_trace_are_not_kept(tmp_path: Path) -> None:
    code = f"""
work(0.05)
work(0.05, trace_id="{TRACE}")
work(0.05, trace_id="{TRACE[1:]}", span_id="{SPAN}")
work(0.05, trace_id="{TRACE}", span_id="{SPAN.upper()}")
work(0.05, trace_id="{"0" * 32}", span_id="{SPAN}")
"""
    assert collected(tmp_path, code).exemplars == {}


def test_labels_of_a_trace_make_no_series(tmp_path: Path) -> None:
    code = """
for number in range(1, 200):
    work(1e-5, trace_id=f"{number:032x}", span_id=f"{number:016x}")
"""
    snapshot = collected(tmp_path, code)
    assert [key.labels for key in snapshot.keys if key.op == "core::work"] == [()]


def test_the_newest_of_many_are_shown(tmp_path: Path) -> None:
    code = """
for number in range(1, 20):
    fast()
    work(0.01, trace_id=f"{number:032x}", span_id=f"{number:016x}")
"""
    snapshot = collected(tmp_path, code)
    (found,) = snapshot.exemplars.values()
    numbers = [int(one.span_id, 16) for one in found]
    assert len(numbers) == 4
    # Now and then one is not kept, where the one before it was held up for as long.
    assert sorted(numbers) == numbers and min(numbers) > 10


def test_those_of_an_ended_process_are_shown_when_its_file_is_gone(tmp_path: Path) -> None:
    seen = collected(tmp_path, f'work(0.05, trace_id="{TRACE}", span_id="{SPAN}")').exemplars
    host = Host([str(tmp_path)], consume=True)
    assert host.sweep() == 0
    for _ in range(2):
        assert host.collect().exemplars == seen != {}
    assert not list(tmp_path.glob("*.seg"))
