"""Arbitrary bytes in segment files: every pass of the host's readers succeeds.

`make fuzz-agent` runs it for FUZZ_SECONDS: with atheris (libFuzzer for Python), which is guided by
coverage, if available for this Python; else with random mutations. test_fuzz_host.py runs a bounded
number of those. Usage: fuzz_host.py SECONDS [libFuzzer's arguments]
"""

import os
import random
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from opscope.host.host import Host
from opscope.host.self_metrics import memory_bytes
from opscope.segments import layout, segment
from opscope.segments.dictionary import Dictionary
from opscope.segments.segment_file import SegmentError
from tests.segments.segment_writer import Process, Range, SegmentWriter

_PROCESS = Process(2**31, 1, random_id=b"0123456789abcdef")
_LABELS = (("model_id", "a"), ("tenant", "größe"))
_SLOW_S = 20.0
_SLOW_READ_S = 1.0
_WARM_READS = 5000
_GROWTH_BYTES = 32 << 20


def seeds() -> list[bytes]:
    """Valid segments."""
    small = SegmentWriter(_PROCESS, created_unix_ns=1).add([Range("a", 1e-3)])
    many = SegmentWriter(_PROCESS, created_unix_ns=1, liveness=1)
    many.add(
        Range(f"op{n % 70}", 10.0 ** -(n % 8), n, labels=_LABELS[: n % 3], table=n % 3)
        for n in range(1, 300)
    )
    many.notes({"service.name": "fuzz", "bridge.numpy": "attached", "program": "x"})
    many.usage("key")
    many.metric("opscope.memory.live", "cpu", 1, layout.METRIC_GAUGE)
    many.metric("opscope.memory.allocated", "cpu", 1, layout.METRIC_COUNTER)
    for n in range(1, 300):
        many.variance(f"op{n % 70}", float(n), 1e-6, labels=_LABELS[: n % 3])
    many.variance(None, 1e6, 1.0)
    return [small.to_bytes(), many.to_bytes()]


def survives(raw: bytes, directory: Path) -> None:
    """Passes over a directory with a good file and one of these bytes, of other ones, of fewer."""
    good = SegmentWriter(created_unix_ns=1).add([Range("good", 1e-3, 3)])
    good.write(directory)
    path = directory / _PROCESS.file_name
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


def run_in_memory(
    seconds: float, executions: int, seed: int, *, is_strict: bool = False
) -> tuple[int, int]:
    """Mutations to the reader alone, with no file: some thousand a second. How many there were, and
    how many of them were read. `is_strict`: none may take long, nor memory grow."""
    chosen = random.Random(seed)
    corpus = seeds()
    until = time.monotonic() + seconds
    done = taken = begun_bytes = 0
    while done < executions and time.monotonic() < until:
        raw = mutated(chosen.choice(corpus), chosen)

        def read(offset: int, size: int, raw: bytes = raw) -> bytes:
            return raw[offset : offset + size]

        began = time.thread_time()
        try:
            segment.read_segment(read, segment.read_header(read), Dictionary())
            taken += 1
        except SegmentError:
            pass
        except BaseException:
            Path("crash-fuzz-host.bin").write_bytes(raw)
            raise
        done += 1
        if not is_strict:
            continue
        # CPU time, because other programs may run meanwhile.
        assert time.thread_time() - began < _SLOW_READ_S
        if done == _WARM_READS:
            begun_bytes = memory_bytes()
        if begun_bytes and done % _WARM_READS == 0:
            assert memory_bytes() < begun_bytes + _GROWTH_BYTES, done
    return done, taken


def main() -> None:
    seconds = float(sys.argv[1])
    seed = random.SystemRandom().randrange(1 << 32)
    done, taken = run_in_memory(seconds / 2, 1 << 60, seed, is_strict=True)
    print(f"in memory, seed {seed}: {done} segments, {taken} of them read, no failure", flush=True)
    seconds /= 2
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
