"""The cost of the host agent on a busy host: 100 observed processes, each with 300 operators in two
phases.

The processes are real, forked from one, each with its own recorder and segment, and alive during
the measurement. Passes are timed in a fresh process. Memory and CPU share are those of the command
`opscope agent`, including its sweeps and its state, with a scrape every 15 s.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from opscope.bench import Effort, Result, segment_directory
from opscope.errors import OpscopeError

_PROCESSES = 100
_OPERATORS = 300
_PHASES = 2
_INTERVAL_S = 15.0

_AGENT = "from opscope.cli import main; main()"

# All processes share one standard input, and wait for its end.
_FLEET = """
import os, sys
import opscope
from opscope.record import recorder

directory, processes, operators = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
recorder.start(directory)

def work():
    for number in range(operators):
        for phase in ("forward", "backward"):
            for _ in range(20):
                with opscope.record_function(f"bench::operator_{number}", phase=phase):
                    pass

ready, say_ready = os.pipe()
children = []
for _ in range(processes - 1):
    child = os.fork()
    if child == 0:
        work()
        os.write(say_ready, b".")
        os.read(0, 1)
        os._exit(0)
    children.append(child)
work()
waited_for = 0
while waited_for < len(children):
    waited_for += len(os.read(ready, len(children)))
print("ready", flush=True)
os.read(0, 1)
for child in children:
    os.waitpid(child, 0)
"""

# Prints the milliseconds of each pass, as JSON: of idle processes, and of processes in which every
# operator counts between two passes. This process counts in their place, so that they do not run.
_PASSES = """
import json, mmap, sys
from pathlib import Path
from time import perf_counter_ns
import numpy as np
from opscope.host.host import Host
from opscope.segments import layout

directory, rounds, processes, series = sys.argv[1], *map(int, sys.argv[2:])
host = Host([directory], consume=False)

def counts(path):
    with path.open("r+b") as file:
        content = mmap.mmap(file.fileno(), 0)
    chunk_count = int(np.frombuffer(content, layout.HEADER, 1)["chunk_count"][0])
    found = []
    for index in range(chunk_count):
        start = layout.HEADER_BYTES + index * layout.CHUNK_BYTES
        kind, _, _, used = np.frombuffer(content, np.uint32, 4, start).tolist()
        if kind == layout.CELLS:
            cells = np.frombuffer(content, layout.CELL, used, start + layout.CHUNK_HEADER_BYTES)
            found.append((cells, cells["sample_count"] > 0))
    return found

def passes(counted):
    for _ in range(rounds):
        for cells, is_used in counted:
            cells["sample_count"][is_used] += np.uint64(1)
            cells["weight"][is_used] += np.uint64(layout.WEIGHT_ONE)
        start = perf_counter_ns()
        found = host.collect()
        yield (perf_counter_ns() - start) / 1e6
    assert (len(found.processes), len(found.keys)) == (processes, series), found.bad_segments

idle = list(passes([]))
files = Path(directory).rglob("*.seg")
print(json.dumps([idle, list(passes([one for path in files for one in counts(path)]))]))
"""


def measure(effort: Effort) -> Iterator[Result]:
    rounds = effort.rounds_of(21)
    intervals = 1 if effort.quick else 4
    with segment_directory() as directory, _fleet(directory):
        percent, rss = _running(directory, intervals)
        passes, busy = _passes_ms(directory, rounds)  # last: it writes into the segments
    case = f"pass_{_PROCESSES}x{_OPERATORS}x{_PHASES}_ms"
    yield Result("agent", case, statistics.median(passes), "ms", None, 100.0, rounds)
    yield Result("agent", "busy_pass_ms", statistics.median(busy), "ms", None, None, rounds)
    yield Result("agent", "first_pass_ms", passes[0], "ms", None, None, 1)
    yield Result("agent", "core_percent_15s", percent, "%", None, 0.7, intervals)
    yield Result("agent", "rss_mib", rss, "MiB", None, 64.0, 1)


def _passes_ms(directory: str, rounds: int) -> tuple[list[float], list[float]]:
    """The duration of each pass in a fresh process, which checks that it saw everything: of idle
    processes, and of busy ones."""
    numbers = map(str, (rounds, _PROCESSES, _OPERATORS * _PHASES))
    done = subprocess.run(
        [sys.executable, "-c", _PASSES, directory, *numbers], capture_output=True, text=True
    )
    if done.returncode != 0:
        raise OpscopeError(f"the passes failed: {done.stderr.strip()}")
    idle, busy = json.loads(done.stdout)
    return idle, busy


def _running(directory: str, intervals: int) -> tuple[float, float]:
    """Percent of one core, and MiB, of `opscope agent` while it is scraped."""
    with subprocess.Popen(
        [sys.executable, "-c", _AGENT, "agent", "--listen=127.0.0.1:0", "--directory", directory],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as agent:
        try:
            assert agent.stdout is not None
            said = agent.stdout.readline()
            urls = [word for word in said.split() if word.startswith("http://")]
            if not urls:
                raise OpscopeError(f"the agent did not start: {said}{agent.stdout.read()}")
            metrics = urls[0].rstrip("/") + "/metrics"  # the first is the live page's
            for _ in range(3):
                _scrape(metrics)
            began, used_s = time.monotonic(), _cpu_s(agent.pid)
            for number in range(1, intervals + 1):
                time.sleep(max(began + number * _INTERVAL_S - time.monotonic(), 0.0))
                _scrape(metrics)
            used_s = _cpu_s(agent.pid) - used_s
            wall_s = time.monotonic() - began
            status = Path(f"/proc/{agent.pid}/status").read_text()
        finally:
            agent.terminate()
    rss_mib = int(status.partition("VmRSS:")[2].split()[0]) / 1024
    return 100 * used_s / wall_s, rss_mib


def _scrape(url: str) -> None:
    with urlopen(url) as page:
        page.read()


def _cpu_s(pid: int) -> float:
    """CPU seconds of the process, including ended threads (proc(5), fields 14 and 15)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _fleet(directory: str) -> Iterator[None]:
    """Runs the observed processes; all have recorded, and wait."""
    fleet = subprocess.Popen(
        [sys.executable, "-c", _FLEET, directory, str(_PROCESSES), str(_OPERATORS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with fleet:
        assert fleet.stdout is not None
        if fleet.stdout.readline().strip() != "ready":
            raise OpscopeError("the observed processes could not be started")
        yield
