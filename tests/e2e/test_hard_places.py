"""Without space, the program runs as if unobserved, and the export is complete or shows what is
missing."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from opscope.attachment import ledger
from tests.e2e.observed_host import ObservedHost, observed_host
from tests.e2e.test_process_life import added, run_both, script

SEGMENT_BYTES = 128 << 10
"""The initial size of a segment."""

# More operators than the segment can hold.
MANY = """
import opscope
for number in range(4000):
    with opscope.record_function(f"operator {number}"):
        pass
print("on")
"""


def can_mount() -> bool:
    return subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode == 0


def limited(size: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.fixture
def small_host(tmp_path: Path) -> Iterator[Callable[[int], ObservedHost]]:
    """A host whose file system for segments has this many bytes."""
    place = tmp_path / "small"
    place.mkdir(mode=0o700)
    opened = []

    def make(size: int) -> ObservedHost:
        options = f"size={size},mode=700,uid={os.getuid()}"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], check=True)
        opened.append(observed_host(place))
        return opened[0].__enter__()

    yield make
    for host in opened:
        host.__exit__(None, None, None)
        subprocess.run(["umount", place], check=True)


def metric(host: ObservedHost, name: str, **labels: str) -> float:
    return sum(
        sample.value
        for sample in host.samples()
        if sample.name == name and labels.items() <= sample.labels.items()
    )


def reasons(host: ObservedHost) -> set[str]:
    return {entry.text for entry in ledger.read_all([str(host.directory)])}


def test_without_room_from_the_start_the_reason_is_written_down(
    host: ObservedHost, tmp_path: Path
) -> None:
    program = script(tmp_path, "work(10)\nprint('on')\nos.kill(os.getpid(), 9)\n")
    run_both(host, sys.executable, "-B", program, limit=limited(SEGMENT_BYTES - 1))
    (reason,) = reasons(host)
    assert reason.endswith(": no space")
    assert metric(host, "opscope_attachment_results_total", result="recorder") == 1
    assert added(host) == 0


def test_a_process_with_little_address_space_keeps_all_of_it(
    host: ObservedHost, tmp_path: Path
) -> None:
    size = (1 << 30) - (1 << 20)
    program = script(tmp_path, "work(10)\nprint('on')\nos.kill(os.getpid(), 9)\n")
    run_both(
        host,
        sys.executable,
        "-B",
        program,
        limit=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size)),
    )
    (reason,) = reasons(host)
    assert reason.endswith("less than 1 GiB of address space (ulimit -v)")
    assert added(host) == 0


def test_without_room_to_grow_nothing_is_lost(host: ObservedHost, tmp_path: Path) -> None:
    program = script(tmp_path, MANY)
    run_both(host, sys.executable, "-B", program, limit=limited(SEGMENT_BYTES + 4096))
    calls = host.calls()
    assert calls["other"] > 0
    assert calls["other"] == metric(host, "opscope_recorder_folded_total")
    # The extra call creates the program's first array.
    assert calls.total() + metric(host, "opscope_recorder_dropped_total") == 4000 + 1


# Only a user who may mount can fill a file system.
if can_mount():

    def test_where_there_is_no_room_for_the_living_they_say_so(
        small_host: Callable[[int], ObservedHost], tmp_path: Path
    ) -> None:
        # Segments may use a quarter: two of them.
        host = small_host(SEGMENT_BYTES * 8 + 8192)
        program = script(
            tmp_path,
            """
            work(10)
            begun, begin = os.pipe()
            end, go = os.pipe()
            for _ in range(5):
                if os.fork() == 0:
                    os.close(go)
                    work(10)
                    os.write(begin, b".")
                    os.read(end, 1)
                    os._exit(0)
                os.read(begun, 1)
            os.close(go)
            for _ in range(5):
                os.wait()
            print("on")
            """,
        )
        run_both(host, sys.executable, "-B", program)
        # One child has space; the others report that they had none.
        assert metric(host, "opscope_attachment_results_total", result="recorder") == 4
        assert metric(host, "opscope_segments_discarded_total") == 0
        assert added(host) == 20

    def test_where_there_is_no_room_the_dead_give_way_and_are_counted(
        small_host: Callable[[int], ObservedHost], tmp_path: Path
    ) -> None:
        host = small_host(SEGMENT_BYTES * 8 + 8192)
        program = script(
            tmp_path,
            """
            work(10)
            for _ in range(5):
                if os.fork() == 0:
                    work(10)
                    os._exit(0)
                os.wait()
            print("on")
            """,
        )
        run_both(host, sys.executable, "-B", program)
        assert metric(host, "opscope_attachment_results_total", result="recorder") == 0
        assert metric(host, "opscope_segments_discarded_total") == 4
        assert added(host) == 20


def test_children_of_a_process_that_may_open_nothing_more_go_on(
    host: ObservedHost, tmp_path: Path
) -> None:
    program = script(
        tmp_path,
        """
        import resource
        work(10)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, 4096))
        if os.fork() == 0:
            work(10)
            os._exit(6)
        print(os.waitstatus_to_exitcode(os.wait()[1]))
        """,
    )
    run_both(host, sys.executable, "-B", program)
    assert added(host) == 10
    assert reasons(host) <= {"forked child cannot record: input/output error"}
