"""Arbitrary bytes in segment files: every pass of the host's readers succeeds.

`make fuzz-agent` runs it for FUZZ_SECONDS: with atheris (libFuzzer for Python), which is guided by
coverage, if available for this Python; else with random mutations. test_fuzz_host.py runs a bounded
number of those. fuzz_segments.py tries the reader alone, with many more segments.
Usage: fuzz_host.py SECONDS [libFuzzer's arguments]
"""

import os
import random
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from opscope.host.host import Host
from opscope.segments import layout
from opscope.segments.segment_file import SegmentError
from tests.host.fuzz_segments import PROCESS, seeds
from tests.segments.segment_writer import Range, SegmentWriter

_SLOW_S = 20.0


def survives(raw: bytes, directory: Path) -> None:
    """Passes over a directory with a good file and one of these bytes, of other ones, of fewer."""
    good = SegmentWriter(created_unix_ns=1).add([Range("good", 1e-3, 3)])
    good.write(directory)
    path = directory / PROCESS.file_name
    host = Host([str(directory)], consume=True)
    began = time.monotonic()
    other = mutated(raw, random.Random(raw)) if raw else b"x"
    for part in (raw, other, raw[: len(raw) // 2]):
        path.write_bytes(part)
        snapshot = host.collect()
        host.sweep()
    assert time.monotonic() - began < _SLOW_S
    row = next(row for row, key in enumerate(snapshot.keys) if key.op == "good")
    assert snapshot.calls[row] >= 3
    assert np.isfinite(snapshot.variances).all()
    assert {reason for (reason,) in snapshot.bad_segments} <= set(SegmentError.REASONS)
    (directory / good.process.file_name).unlink()
    path.unlink(missing_ok=True)


def mutated(raw: bytes, chosen: random.Random) -> bytes:
    """Changes some bytes, words or runs, mostly in meaningful places."""
    out = bytearray(raw)
    starts = range(layout.HEADER_BYTES, len(out), layout.CHUNK_BYTES)
    for _ in range(1 << chosen.randrange(6)):
        base = chosen.choice([0, *starts]) if chosen.random() < 0.9 else 0
        at = min(base + int(chosen.expovariate(1 / 150)), len(out) - 1)
        kind = chosen.randrange(4)
        if kind == 0:
            out[at] = chosen.randrange(256)
        elif kind == 1:
            word = chosen.choice([0, 1, 255, 1 << 15, (1 << 32) - 1, 1 << 62, (1 << 64) - 1])
            out[at : at + 8] = word.to_bytes(8, "little")
        elif kind == 2:
            out[at : at + 4] = chosen.randrange(1 << chosen.choice([4, 11, 32])).to_bytes(
                4, "little"
            )
        else:
            other = chosen.randrange(len(out))
            out[at : at + 64] = out[other : other + 64]
    return bytes(out[: len(raw) if chosen.random() < 0.9 else chosen.randrange(len(out))])


def run(seconds: float, executions: int, seed: int) -> int:
    """Runs mutations until the time or their number is over; returns how many ran."""
    chosen = random.Random(seed)
    corpus = seeds()
    until = time.monotonic() + seconds
    done = 0
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as d:
        while done < executions and time.monotonic() < until:
            raw = mutated(chosen.choice(corpus), chosen)
            try:
                survives(raw, Path(d))
            except BaseException:
                Path("crash-fuzz-host.bin").write_bytes(raw)
                raise
            done += 1
    return done


def main() -> None:
    seconds = float(sys.argv[1])
    seed = random.SystemRandom().randrange(1 << 32)
    try:
        import atheris  # type: ignore[import-untyped,import-not-found,unused-ignore]
    except ImportError:
        print(f"no atheris for this Python: mutations at random, seed {seed}")
        print(f"{run(seconds, 1 << 60, seed)} executions, no failure")
        return
    atheris.instrument_all()  # pyright: ignore[reportAttributeAccessIssue]
    corpus = tempfile.mkdtemp()
    for number, raw in enumerate(seeds()):
        (Path(corpus) / str(number)).write_bytes(raw)
    place = Path(tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
    options = [f"-max_total_time={seconds:.0f}", "-max_len=131072", "-timeout=30"]
    atheris.Setup([sys.argv[0], *options, *sys.argv[2:], corpus], lambda raw: survives(raw, place))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
