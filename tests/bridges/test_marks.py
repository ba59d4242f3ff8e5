"""Ranges that libraries mark: the package nvtx, and ittapi, PyTorch and oneDNN through ITT.

Programs of their own, because a library decides at its first mark whether anyone follows them.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from opscope.bridges import marks
from opscope.host.host import Host
from opscope.host.snapshot import SELF_UNKNOWN, TOTAL_NS, WEIGHT
from opscope.segments import directories

pytest.importorskip("nvtx")

_BEFORE = """
import collections, json, os, sys
import opscope

names = collections.Counter()
opscope.attach()
opscope.add_global_callback(lambda fn: names.update([fn.name]))

def report(*values):
    marked = {name: count for name, count in names.items() if name[:5] in ("nvtx:", "itt::")}
    print(json.dumps([marked, *values]))
"""


def _run(program: str, directory: Path, marks: str = "nvtx,itt", **variables: str) -> Any:
    """What the program prints last, as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={
            "PATH": "/usr/bin:/bin",
            "OPSCOPE_SAMPLING": "1",
            "OPSCOPE_MARKS": marks,
            "OPSCOPE_DIR": str(directory / "segments"),
            **variables,
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout.splitlines()[-1])


_NVTX = """
import nvtx

@nvtx.annotate("decorated", domain="one")
def work():
    with nvtx.annotate("within"):
        pass

for _ in range(5):
    work()
nvtx.push_range("pushed", domain="two")
work()
nvtx.pop_range(domain="two")
handle = nvtx.start_range("process range")
nvtx.mark("a point")
nvtx.end_range(handle)
"""
_COUNTS = {
    "nvtx::decorated": 6,
    "nvtx::within": 6,
    "nvtx::pushed": 1,
    "nvtx::process range": 1,
}


def test_annotations_of_the_package_nvtx_are_ranges(tmp_path: Path) -> None:
    counts, bridges, shown = _run(
        _BEFORE
        + _NVTX
        + "report(opscope.attach_status().bridges, 'NVTX_INJECTION64_PATH' in os.environ)",
        tmp_path,
    )
    assert counts == _COUNTS
    assert (bridges["nvtx"], bridges["itt"]) == ("attached", "attached")
    assert not shown


def test_they_are_recorded_exactly_between_windows_too(tmp_path: Path) -> None:
    program = _BEFORE.rpartition("opscope.add")[0] + _NVTX + "print([])"
    _run(program, tmp_path, OPSCOPE_SAMPLING="windows", OPSCOPE_PERIOD_MS="1000000")
    snapshot = Host(directories.exactly([str(tmp_path / "segments")]), consume=False).collect()
    calls = {
        key.op: int(row[WEIGHT]) >> 16
        for key, row in zip(snapshot.keys, snapshot.counters, strict=True)
        if key.framework == "nvtx"
    }
    assert calls == _COUNTS


def test_marks_are_followed_only_if_the_program_asks(tmp_path: Path) -> None:
    for asked in ("", "itt"):
        counts, bridges = _run(
            _BEFORE + _NVTX + "report(opscope.attach_status().bridges)", tmp_path, asked
        )
        assert counts == {}
        assert "nvtx" not in bridges


def test_a_program_attached_at_its_start_is_seen_from_its_first_mark(tmp_path: Path) -> None:
    """By `opscope run`, where the import of nvtx begins the observation."""
    program = tmp_path / "program.py"
    program.write_text(
        _NVTX + "import opscope, json; print(json.dumps(opscope.attach_status()[0]))"
    )
    command = "import sys; from opscope.cli import main; sys.argv[0] = 'opscope'; main()"
    done = subprocess.run(
        [sys.executable, "-c", command, "run", "--", sys.executable, str(program)],
        env={
            **os.environ,
            "OPSCOPE_MARKS": "nvtx",
            "OPSCOPE_SAMPLING": "1",
            "OPSCOPE_DIR": str(tmp_path / "segments"),
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stdout) == (0, "true\n"), done.stderr
    snapshot = Host(directories.exactly([str(tmp_path / "segments")]), consume=False).collect()
    assert {key.op for key in snapshot.keys if key.framework == "nvtx"} == {*_COUNTS}


def test_another_tool_keeps_its_place(tmp_path: Path) -> None:
    counts, reason = _run(
        _BEFORE + "import nvtx; report(opscope.attach_status().bridges['nvtx'])",
        tmp_path,
        NVTX_INJECTION64_PATH="/opt/tool/libtool.so",
    )
    assert counts == {}
    assert reason == "NVTX_INJECTION64_PATH names another tool"


def test_with_other_threads_the_environment_stays_as_it_is(tmp_path: Path) -> None:
    counts, reason, value = _run(
        """
import threading
is_over = threading.Event()
thread = threading.Thread(target=is_over.wait)
thread.start()
"""
        + _BEFORE
        + _NVTX
        + """
is_over.set()
thread.join()
import subprocess
value = subprocess.run(["printenv", "NVTX_INJECTION64_PATH"], stdout=subprocess.PIPE).returncode
report(opscope.attach_status().bridges["nvtx"], value)
""",
        tmp_path,
    )
    assert counts == {}
    assert reason == "NVTX_INJECTION64_PATH cannot be set while other threads run"
    assert value == 1


def test_a_child_without_opscope_runs_as_without_the_variable(tmp_path: Path) -> None:
    child = """
import ctypes
import nvtx
nvtx.push_range("one")
nvtx.pop_range()
print([type(nvtx.get_domain("any")).__name__])
libc = ctypes.CDLL(None)
libc.getenv.restype = ctypes.c_char_p
print(libc.getenv(b"NVTX_INJECTION64_PATH").decode())
print("libopscope" in open("/proc/self/maps").read())
"""
    program = f"""
import subprocess, sys
done = subprocess.run([sys.executable, "-c", {child!r}], capture_output=True, text=True)
report(done.returncode, done.stderr, done.stdout.splitlines())
"""
    _, code, errors, lines = _run(_BEFORE + program, tmp_path)
    assert (code, errors) == (0, "")
    assert lines == ["['Domain']", marks.library(), "False"]


def test_a_child_with_opscope_follows_its_own_marks(tmp_path: Path) -> None:
    program = f"""
import subprocess, sys
done = subprocess.run([sys.executable, "-c", {_BEFORE + _NVTX + "report()"!r}], stdout=-1)
report(json.loads(done.stdout))
"""
    counts, (inner,) = _run(_BEFORE + program, tmp_path)
    assert counts == {}
    assert inner == _COUNTS


def test_detaching_takes_the_variable_away_and_attaching_follows_again(tmp_path: Path) -> None:
    counts, before, between, after = _run(
        _BEFORE
        + """
import subprocess
def is_set():
    return subprocess.run(["printenv", "NVTX_INJECTION64_PATH"], stdout=-1).returncode == 0
import nvtx
before = is_set()
with nvtx.annotate("attached"):
    opscope.detach()
    with nvtx.annotate("detached"):
        pass
between = is_set()
opscope.attach()
with nvtx.annotate("attached"):
    pass
report(before, between, is_set())
""",
        tmp_path,
        OPENBLAS_NUM_THREADS="1",  # nvtx imports NumPy, and its threads are threads
    )
    assert counts == {"nvtx::attached": 2}
    assert (before, between, after) == (True, False, True)


def test_each_thread_nests_its_own_marks(tmp_path: Path) -> None:
    (counts,) = _run(
        _BEFORE
        + _NVTX
        + """
from concurrent.futures import ThreadPoolExecutor
names.clear()
with ThreadPoolExecutor(4) as pool:
    list(pool.map(lambda i: work(), range(200)))
report()
""",
        tmp_path,
    )
    assert counts == {"nvtx::decorated": 200, "nvtx::within": 200}


def test_process_ranges_end_on_any_thread_and_overlap(tmp_path: Path) -> None:
    counts, ids, ended = _run(
        _BEFORE
        + """
import nvtx
from concurrent.futures import ThreadPoolExecutor
domain = nvtx.get_domain("one")
ended = collections.Counter()
opscope.add_global_callback(lambda fn: None, end=lambda fn, _: ended.update([fn.name]))
handles = [nvtx.start_range(f"request {i % 2}", domain="one") for i in range(100)]
ids = [domain.start_range(message="of a domain") for _ in range(100)]
nvtx.end_range(handles[0])
with ThreadPoolExecutor(4) as pool:
    list(pool.map(nvtx.end_range, handles))
    list(pool.map(domain.end_range, ids))
domain.end_range(0)
domain.end_range(ids[0])
report(ids, {name: count for name, count in ended.items() if name[:5] == "nvtx:"})
""",
        tmp_path,
    )
    assert counts == {"nvtx::request 0": 50, "nvtx::request 1": 50, "nvtx::of a domain": 100}
    assert ended == counts
    assert len({*ids, 0}) == 101


def test_a_process_range_has_its_total_time_and_an_unknown_self_time(tmp_path: Path) -> None:
    program = (
        _BEFORE.rpartition("opscope.add")[0]
        + """
import nvtx, threading, time
handle = nvtx.start_range("over threads")
time.sleep(0.06)  # longer than asserted: the clock's rate is measured to a thousandth
thread = threading.Thread(target=nvtx.end_range, args=(handle,))
thread.start()
thread.join()
nvtx.start_range("open at the exit")
print([])
"""
    )
    for sampling in ("1", "windows"):
        directory = tmp_path / sampling
        directory.mkdir()
        _run(program, directory, OPSCOPE_SAMPLING=sampling, OPSCOPE_PERIOD_MS="1000000")
        found = Host(directories.exactly([str(directory / "segments")]), consume=False).collect()
        rows = {
            key.op: row
            for key, row in zip(found.keys, found.counters, strict=True)
            if key.framework == "nvtx"
        }
        assert {*rows} == {"nvtx::over threads"}
        row = rows["nvtx::over threads"]
        assert int(row[WEIGHT]) >> 16 == 1
        assert row[TOTAL_NS] >= 50e6
        assert row[SELF_UNKNOWN] != 0


def test_a_forked_child_ends_the_process_ranges_that_it_finds_open(tmp_path: Path) -> None:
    counts, ended, code = _run(
        _BEFORE
        + """
import nvtx, threading
ends = collections.Counter()
opscope.add_global_callback(lambda fn: None, end=lambda fn, _: ends.update([fn.name]))
handles = [nvtx.start_range("here")]
thread = threading.Thread(target=lambda: handles.append(nvtx.start_range("on another thread")))
thread.start()
thread.join()
child = os.fork()
if child == 0:
    for handle in handles + handles:
        nvtx.end_range(handle)
    nvtx.end_range(nvtx.start_range("in the child"))
    wanted = {"nvtx::here": 1, "nvtx::on another thread": 1, "nvtx::in the child": 1}
    os._exit(0 if ends == wanted else 1)
_, status = os.waitpid(child, 0)
for handle in handles:
    nvtx.end_range(handle)
report(dict(ends), os.waitstatus_to_exitcode(status))
""",
        tmp_path,
    )
    assert counts == ended == {"nvtx::here": 1, "nvtx::on another thread": 1}
    assert code == 0


def test_a_forked_child_goes_on_within_the_open_marks(tmp_path: Path) -> None:
    counts, inner, code = _run(
        _BEFORE
        + _NVTX
        + """
names.clear()
reading, writing = os.pipe()
with nvtx.annotate("around"):
    work()
    child = os.fork()
    if child == 0:
        names.clear()
        with nvtx.annotate("in the child"):
            work()
if child == 0:
    work()
    os.write(writing, json.dumps(names).encode())
    os._exit(0)
_, status = os.waitpid(child, 0)
report(json.loads(os.read(reading, 10000)), os.waitstatus_to_exitcode(status))
""",
        tmp_path,
    )
    assert counts == {"nvtx::around": 1, "nvtx::decorated": 1, "nvtx::within": 1}
    assert inner == {"nvtx::in the child": 1, "nvtx::decorated": 2, "nvtx::within": 2}
    assert code == 0


def test_overlapped_tasks_of_itt_end_on_any_thread(tmp_path: Path) -> None:
    pytest.importorskip("ittapi")
    order, counts = _run(
        _BEFORE
        + """
import ittapi
from concurrent.futures import ThreadPoolExecutor
order = []
handle = opscope.add_global_callback(
    lambda fn: order.append(f"+{fn.name}"), end=lambda fn, _: order.append(f"-{fn.name}"))
one, two, nested = ittapi.overlapped_task("a"), ittapi.overlapped_task("b"), ittapi.task("nested")
with ThreadPoolExecutor(1) as pool:
    one.begin()
    nested.begin()
    two.begin()
    nested.end()
    pool.submit(one.end).result()
    pool.submit(two.end).result()
    pool.submit(two.end).result()
opscope.remove_callback(handle)
names.clear()
tasks = [ittapi.overlapped_task(f"task {i % 2}") for i in range(100)]
with ThreadPoolExecutor(4) as pool:
    list(pool.map(lambda task: task.begin(), tasks))
    list(pool.map(lambda task: task.end(), tasks))
print(json.dumps([order, dict(names)]))
""",
        tmp_path,
        "itt",
    )
    assert order == ["+itt::a", "+itt::nested", "+itt::b", "-itt::nested", "-itt::a", "-itt::b"]
    assert counts == {"itt::task 0": 50, "itt::task 1": 50}


def test_pytorch_and_onednn_mark_through_itt(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    counts, marked = _run(
        _BEFORE
        + """
import torch
from torch.profiler import itt
assert itt.is_available()
for _ in range(3):
    itt.range_push("mine")
    torch.ones(3).add(1)
    itt.range_pop()
marked = dict(names)
images, filters = torch.ones(4, 64, 64, 64), torch.ones(64, 64, 3, 3)
names.clear()
if torch.backends.mkldnn.is_available():
    torch.nn.functional.conv2d(images, filters)
report(marked)
""",
        tmp_path,
    )
    assert {name: marked[name] for name in ("itt::mine", "aten::add")} == {
        "itt::mine": 3,
        "aten::add": 3,
    }
    assert counts.get("itt::convolution", 0) >= 1
