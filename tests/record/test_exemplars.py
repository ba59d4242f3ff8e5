"""Slow ranges in a trace become exemplars in the segment, and on the agent's pages."""

import subprocess
import sys
import time
from pathlib import Path

from opscope.agent.host import Host
from opscope.agent.snapshot import Snapshot

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
for _ in range(300):
    work(1e-4)
{}
"""


def collected(directory: Path, code: str) -> Snapshot:
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(code), str(directory)], check=False)
    assert done.returncode == 0
    return Host([str(directory)], consume=False).collect()


def test_a_slow_range_in_a_trace_is_kept_with_its_time(tmp_path: Path) -> None:
    before_ns = time.time_ns()
    snapshot = collected(tmp_path, f"work(0.05, trace_id={TRACE!r}, span_id={SPAN!r})")
    (row,) = snapshot.exemplars
    assert snapshot.keys[row].op == "core::work"
    (one,) = snapshot.exemplars[row]
    assert (one.trace_id, one.span_id) == (TRACE, SPAN)
    # By two clocks.
    assert 0.0499 <= one.duration_s < 5
    assert before_ns < one.time_unix_ns < time.time_ns()


def test_what_is_no_slow_range_in_a_trace_is_not_kept(tmp_path: Path) -> None:
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
    for _ in range(200):
        work(0)
    work(0.01, trace_id=f"{number:032x}", span_id=f"{number:016x}")
"""
    snapshot = collected(tmp_path, code)
    (found,) = snapshot.exemplars.values()
    assert [int(one.span_id, 16) for one in found] == [16, 17, 18, 19]
