"""What the host agent takes for a busy host: 100 observed processes with 300 operators each.

The processes are real ones, forked from one, each with a recorder and a segment of its own, and
alive while the agent looks. Passes are timed in a fresh process; memory is that of the command
``opscope agent``.
"""

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from opscope.bench import Effort, Result, segment_directory
from opscope.errors import OpscopeError

_PROCESSES = 100
_OPERATORS = 300

_AGENT = "from opscope.cli import main; main()"

# Every process waits for the end of the one standard input that all share.
_FLEET = """
import os, sys
import opscope
from opscope.record import recorder

directory, processes, operators = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
recorder.start(directory)

def work():
    for number in range(operators):
        for _ in range(20):
            with opscope.record_function(f"bench::operator_{number}"):
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

# Milliseconds of each pass, as JSON.
_PASSES = """
import json, sys
from time import perf_counter_ns
from opscope.agent.host import Host

directory, rounds, processes, operators = sys.argv[1], *map(int, sys.argv[2:])
host = Host([directory], consume=False)
passes = []
for _ in range(rounds):
    start = perf_counter_ns()
    found = host.collect()
    passes.append((perf_counter_ns() - start) / 1e6)
assert (len(found.processes), len(found.keys)) == (processes, operators), found.bad_segments
print(json.dumps(passes))
"""


def measure(effort: Effort) -> Iterator[Result]:
    rounds = effort.rounds_of(21)
    with segment_directory() as directory, _fleet(directory):
        passes = _passes_ms(directory, rounds)
        rss = _rss_mib(directory)
    value = statistics.median(passes)
    yield Result("agent", "pass_100x300_ms", value, "ms", None, 150.0, rounds)
    yield Result("agent", "first_pass_ms", passes[0], "ms", None, None, 1)
    yield Result("agent", "rss_mib", rss, "MiB", None, 64.0, 1)


def _passes_ms(directory: str, rounds: int) -> list[float]:
    """How long each pass took in a fresh process, which checks that it saw everything."""
    numbers = map(str, (rounds, _PROCESSES, _OPERATORS))
    done = subprocess.run(
        [sys.executable, "-c", _PASSES, directory, *numbers], capture_output=True, text=True
    )
    if done.returncode != 0:
        raise OpscopeError(f"the passes failed: {done.stderr.strip()}")
    passes: list[float] = json.loads(done.stdout)
    return passes


def _rss_mib(directory: str) -> float:
    """Memory of ``opscope agent`` itself, once its page has been read a few times."""
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
            for _ in range(3):
                with urlopen(urls[0]) as page:
                    page.read()
            status = Path(f"/proc/{agent.pid}/status").read_text()
        finally:
            agent.terminate()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


@contextmanager
def _fleet(directory: str) -> Iterator[None]:
    """The observed processes, all recorded and waiting."""
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
