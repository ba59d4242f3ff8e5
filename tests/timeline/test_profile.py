"""`opscope.profile()`: counts of real ranges, nesting, memory, shapes; invalid uses."""

import json
import os
import subprocess
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import opscope
import opscope.tensor as core
from opscope.errors import RecorderError
from tests.timeline import chrome_checker


@pytest.fixture(autouse=True)
def no_callbacks() -> Iterator[None]:
    assert not opscope.has_callbacks()
    yield
    opscope.clear_callbacks()


def calls(prof: opscope.profile) -> dict[str, int]:
    return {row.key: row.count for row in prof.key_averages()}


def step() -> None:
    with opscope.record_function("step"):
        x = core.ones([4, 8])
        x.requires_grad_(True)
        (x * x).relu().sum().backward()


def test_every_range_is_counted_as_often_as_a_callback_sees_it() -> None:
    seen: Counter[str] = Counter()
    step()
    with opscope.profile() as prof:
        handle = opscope.add_global_callback(lambda fn: seen.update([fn.name]))
        for _ in range(20):
            step()
        opscope.remove_callback(handle)
    assert seen["step"] == 20
    assert calls(prof) == seen
    assert prof.lost_count == 0
    assert not opscope.has_callbacks()


def test_no_callback_sees_the_calibration() -> None:
    seen: list[str] = []
    opscope.add_global_callback(lambda fn: seen.append(fn.name))
    opscope.add_thread_local_callback(lambda fn: seen.append(fn.name))
    with opscope.profile() as prof:
        pass
    assert seen == []
    assert calls(prof) == {}
    assert prof.overhead["python"].whole >= 0


def test_threads_and_tasks_are_in_it() -> None:
    def run() -> None:
        with opscope.record_function("on a thread"):
            pass

    with opscope.profile() as prof:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        opscope.wait(opscope.fork(run))
    assert calls(prof) == {"on a thread": 2}
    assert repr(prof).startswith("<opscope.profile: 2 ranges of 1 operator in ")


def test_total_time_holds_self_times_of_what_ran_within() -> None:
    with opscope.profile() as prof:
        step()
    rows = {row.key: row for row in prof.key_averages()}
    within = sum(row.self_cpu_time_total for row in rows.values())
    assert rows["step"].cpu_time_total == pytest.approx(within, rel=1e-6, abs=1e-3)
    assert prof.key_averages().self_cpu_time_total == pytest.approx(within)
    order = [row.self_cpu_time_total for row in prof.key_averages()]
    assert order == sorted(order, reverse=True)


def test_memory_is_that_of_the_operator_and_of_what_ran_within() -> None:
    x = core.ones([256])
    with opscope.profile() as prof, opscope.record_function("outer"):
        _ = x + x
    rows = {row.key: row for row in prof.key_averages()}
    assert (rows["core::add"].self_cpu_memory_usage or 0) >= 1024
    assert rows["outer"].cpu_memory_usage == rows["core::add"].cpu_memory_usage
    assert rows["outer"].self_cpu_memory_usage == 0
    assert "CPU Mem" in prof.table()


def test_shapes_group_the_rows() -> None:
    a, b = core.ones([2, 3]), core.ones([5])
    with opscope.profile(record_shapes=True) as prof:
        for x in (a, a, b):
            _ = x + x
    rows = prof.key_averages(group_by_input_shape=True)
    assert {(row.key, row.input_shapes): row.count for row in rows} == {
        ("core::add", ((2, 3), (2, 3))): 2,
        ("core::add", ((5,), (5,))): 1,
    }
    assert "[[2, 3], [2, 3]]" in rows.table(sort_by="count")
    assert calls(prof) == {"core::add": 3}


def test_grouping_by_shapes_that_were_not_recorded_is_refused() -> None:
    with opscope.profile() as prof:
        pass
    with pytest.raises(ValueError, match="record_shapes=True"):
        prof.key_averages(group_by_input_shape=True)


def test_a_failed_range_says_so() -> None:
    with opscope.profile() as prof, pytest.raises(KeyError), opscope.record_function("fails"):
        raise KeyError
    (row,) = prof.key_averages()
    assert row.failed_count == 1


def test_one_profile_at_a_time() -> None:
    with opscope.profile(), pytest.raises(RecorderError, match="only one can run at a time"):
        opscope.profile().start()
    with opscope.profile() as prof:
        step()
    assert calls(prof)["step"] == 1


def test_results_are_there_after_the_end() -> None:
    prof = opscope.profile()
    with pytest.raises(RecorderError, match="has recorded nothing yet"):
        prof.key_averages()
    prof.start()
    with pytest.raises(RecorderError, match="still running"):
        prof.key_averages()
    prof.stop()
    prof.stop()
    assert calls(prof) == {}


def test_a_size_that_cannot_be_is_refused() -> None:
    for size in (0, 1025):
        with pytest.raises(ValueError, match=f"within 1 and 1024, not {size}"):
            opscope.profile(buffer_mib=size)


def test_ranges_without_room_are_counted_and_reported() -> None:
    prof = opscope.profile(buffer_mib=1)
    prof.start()
    for _ in range(60_000):
        with opscope.record_function("many"):
            pass
    with pytest.warns(RuntimeWarning, match=r"ranges found no room.*buffer_mib=4"):
        prof.stop()
    assert prof.lost_count + calls(prof)["many"] == 60_000


def test_a_forked_child_is_not_in_it() -> None:
    with opscope.profile() as prof:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            with opscope.record_function("child"):
                pass
            prof.stop()
            os._exit(opscope.has_callbacks())
        assert os.waitpid(pid, 0)[1] == 0
        with opscope.record_function("parent"):
            pass
    assert calls(prof) == {"parent": 1}


def test_the_timeline_has_arrows_labels_and_the_names_of_threads(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    x = core.ones([4])
    x.requires_grad_(True)
    threading.current_thread().name = "the main one"
    with opscope.profile() as prof, opscope.debug_info(model_id="m", request="17"):
        (x * x).sum().backward()
        opscope.wait(opscope.fork(lambda: x.detach() + 1))
    threading.current_thread().name = "MainThread"
    prof.export_chrome_trace(path)
    trace = chrome_checker.load(path)
    events = trace["traceEvents"]
    assert chrome_checker.arrows(events, "fwdbwd") == [
        ("core::mul", "core::MulBackward"),
        ("core::sum", "core::SumBackward"),
    ]
    assert chrome_checker.arrows(events, "fork") == [("opscope::fork", "opscope::task")]
    ranges = [event for event in events if event["ph"] == "X" and event["name"].startswith("core")]
    assert {event["args"]["model_id"] for event in ranges} == {"m"}
    assert {event["args"]["request"] for event in ranges} == {"17"}
    names = {e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert "the main one" in names


def _output(program: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_numpys_calls_are_counted_with_their_shapes() -> None:
    counts = _output("""
import json, opscope, numpy as np
from opscope.bridges import numpy as bridge
bridge.attach()
a = np.ones((3, 4))
with opscope.profile(record_shapes=True) as prof:
    for _ in range(5):
        a + a
    np.dot(a, a.T)
rows = prof.key_averages(group_by_input_shape=True)
print(json.dumps([[row.key, row.count, row.input_shapes] for row in rows]))
""")
    assert sorted(counts) == [
        ["numpy::add", 5, [[3, 4], [3, 4]]],
        ["numpy::dot", 1, [[3, 4], [4, 3]]],
    ]


def _calls_with_shapes(trace: dict[str, Any]) -> Counter[str]:
    return Counter(
        f"{event['name']} {event['args'].get('Input Dims', [])}"
        for event in trace["traceEvents"]
        if event["ph"] == "X" and event["cat"] != "Trace"
    )


@pytest.mark.slow
def test_pytorchs_counts_shapes_and_arrows_are_those_of_its_own_profiler(tmp_path: Path) -> None:
    """By the timelines: PyTorch's table leaves out an operator that only calls one of its name."""
    ours, theirs = tmp_path / "ours.json", tmp_path / "theirs.json"
    _output(f"""
import opscope, torch
from opscope.bridges import torch as bridge
bridge.attach()
model = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 2))
x = torch.ones(4, 6)
def step():
    model.zero_grad()
    model(x).sum().backward()
for _ in range(2):
    step()
with opscope.profile(record_shapes=True) as mine:
    step()
with torch.profiler.profile(
    activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True
) as other:
    step()
mine.export_chrome_trace({str(ours)!r})
other.export_chrome_trace({str(theirs)!r})
print(0)
""")
    mine, other = chrome_checker.load(ours), json.loads(theirs.read_text())
    calls = _calls_with_shapes(mine)
    assert calls == _calls_with_shapes(other)
    assert calls["aten::addmm [[2], [4, 5], [5, 2], [], []]"] == 1
    arrows = [chrome_checker.arrows(trace["traceEvents"], "fwdbwd") for trace in (mine, other)]
    assert arrows[0] == arrows[1]
    assert len(arrows[0]) >= 4
