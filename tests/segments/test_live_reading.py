"""A segment can be read at any moment while real threads write new operators into it."""

import subprocess
import sys
from pathlib import Path

import pytest

from opscope.host.host import Host
from tests.examples import few_or

LOOKS = few_or(15, 50)

# Works until its standard input ends, then prints the number of ranges.
WRITER = """
import sys, threading
import opscope
from opscope.record import recorder

recorder.start(sys.argv[1])
stop, counts = threading.Event(), []

def work(thread):
    count = 0
    while not stop.is_set():
        with opscope.debug_info(model_id=str(count % 40)):
            with opscope.record_function(f"core::operator_{count % 5000}"):
                with opscope.record_function(f"core::inner_{thread}_{count % 200}"):
                    count += 1
    counts.append(2 * count)

threads = [threading.Thread(target=work, args=(thread,)) for thread in range(4)]
for thread in threads:
    thread.start()
print("ready", flush=True)
sys.stdin.read()
stop.set()
for thread in threads:
    thread.join()
print(sum(counts))
"""


@pytest.mark.slow
@pytest.mark.examples
def test_no_read_finds_damage_or_less_than_the_one_before(tmp_path: Path) -> None:
    place = tmp_path / "segments"
    host = Host([str(place)], consume=True, max_series=100_000)
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(place)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        calls = 0.0
        for _ in range(LOOKS):
            snapshot = host.collect()
            assert snapshot.bad_segments == {}
            assert snapshot.calls.sum() >= calls
            calls = snapshot.calls.sum()
        said, _ = writer.communicate(timeout=300)
    last = host.collect()
    assert last.calls.sum() == int(said)
    assert last.buckets.sum() == int(said) << 16
    assert last.health.dropped == 0
    assert list(place.iterdir()) == []
