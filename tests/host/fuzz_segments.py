"""Mutated segments in memory, read by the host's reader: as many as one wants, over several days.

A batch of segments follows from the seed and the batch's number alone. Each finished batch becomes
a line of the progress file, so a run that was stopped goes on where it was. A batch fails if the
reader raises anything but SegmentError, if a segment takes longer than _SLOW_S of processor time,
or if memory grows; the segment that failed is then in crash-fuzz-segment.bin. `make fuzz-agent`
runs FUZZ_SEGMENTS of them. Usage: fuzz_segments.py --help
"""

import argparse
import gzip
import hashlib
import json
import random
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np

from opscope.host.self_metrics import memory_bytes
from opscope.segments import bounds, layout, segment
from opscope.segments.dictionary import Dictionary
from opscope.segments.segment_file import SegmentError
from tests.segments.segment_writer import Process, Range, SegmentWriter
from tests.segments.test_exemplars import entry

BATCH = 50_000
_SLOW_S = 1.0
_GROWTH_BYTES = 32 << 20
# Of processor time: a hundred times what a batch takes. A segment without an end ends its process.
_BATCH_LIMIT_S = 200.0
PROCESS = Process(2**31, 1, random_id=b"0123456789abcdef")
_LABELS = (("model_id", "a"), ("tenant", "größe"))
_OLD = Path(__file__).parent.parent / "formats" / "v1.seg.gz"
_READER = Path(segment.__file__).parent
# How many changes a segment gets; one of these.
_CHANGES = (1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6, 8, 16, 32)
_COPY_BYTES = 64


def seeds() -> list[bytes]:
    """Valid segments: the least one; one with all kinds of chunks; one with many of everything."""
    small = SegmentWriter(PROCESS, created_unix_ns=1).add([Range("a", 1e-3)])
    whole = SegmentWriter(
        PROCESS,
        created_unix_ns=1,
        window_ns=3_000_000,
        period_ns=250_000_000,
        window_end_ticks=10**9,
        cost_factor_ppm=10**6,
        main_table=1,
    )
    _fill(whole, 6)
    whole.op_id("dear", extra_cost_ps=100)
    many = SegmentWriter(PROCESS, created_unix_ns=1, liveness=1)
    _fill(many, 300)
    return [small.to_bytes(), _with_exemplars(whole), many.to_bytes()]


def _fill(writer: SegmentWriter, count_: int) -> None:
    writer.add(
        Range(f"op{n % 70}", 10.0 ** -(n % 8), n, labels=_LABELS[: n % 3], table=n % 3)
        for n in range(1, count_)
    )
    writer.notes({"service.name": "fuzz", "bridge.numpy": "attached", "program": "x"})
    writer.usage("key")
    writer.metric("opscope.memory.live", "cpu", 1, layout.METRIC_GAUGE)
    writer.metric("opscope.memory.allocated", "cpu", 1, layout.METRIC_COUNTER)
    for n in range(1, count_):
        writer.variance(f"op{n % 70}", float(n), 1e-6, labels=_LABELS[: n % 3])
        writer.off_cpu(f"op{n % 70}", 1e-4, 1e-3, 1e-6, labels=_LABELS[: n % 3])
    writer.variance(None, 1e6, 1.0)
    writer.off_cpu(None, 0.0, 0.0, 1.0)


def _with_exemplars(writer: SegmentWriter) -> bytes:
    raw = bytearray(writer.to_bytes())
    head = np.zeros(1, layout.CHUNK)
    head["kind"], head["used"] = layout.EXEMPLARS, 4
    entries = b"".join(entry(2 | 1 << 32, 5, 9, n) for n in range(4))
    chunk = head.tobytes().ljust(layout.CHUNK_HEADER_BYTES, b"\0") + entries
    raw += chunk.ljust(layout.CHUNK_BYTES, b"\0")
    header = np.frombuffer(raw, layout.HEADER, 1)
    header["chunk_count"] = (len(raw) - layout.HEADER_BYTES) // layout.CHUNK_BYTES
    return bytes(raw)


class Mutated:
    """A seed that is changed in place, and made whole again; a copy would cost more than a read."""

    def __init__(self, raw: bytes, chosen: random.Random) -> None:
        self._bytes = bytearray(raw)
        self._whole = memoryview(self._bytes)
        self._view = self._whole
        self._undo: list[tuple[int, bytearray]] = []
        self._bits = chosen.getrandbits
        self._places = [_place(raw, chosen) for _ in range(1024)]
        self._numbers = [
            chosen.randrange(1 << chosen.choice((4, 11, 16, 32))).to_bytes(4, "little")
            for _ in range(1024)
        ]

    def read(self, offset: int, size: int) -> bytes:
        return self._view[offset : offset + size].tobytes()

    def change(self, changes: int) -> None:
        """Sets bytes, words or runs, mostly in meaningful places."""
        data, places, bits = self._bytes, self._places, self._bits
        for _ in range(changes):
            drawn = bits(48)
            at = places[drawn & 1023]
            kind = drawn >> 10 & 7
            value = drawn >> 13
            if kind < 2:
                new: bytes | bytearray = _BYTES[value & 255]
            elif kind < 4:
                new = _WORDS[value % len(_WORDS)]
            elif kind < 6:
                new = self._numbers[value & 1023]
            elif kind == 6:
                new = _BYTES[data[at] ^ 1 << (value & 7)]
            else:
                other = places[value & 1023]
                new = data[other : other + _COPY_BYTES]
            end = at + len(new)
            self._undo.append((at, data[at:end]))
            data[at:end] = new

    def cut(self, size: int) -> None:
        """Ends the file after `size` bytes, modulo its own."""
        self._view = self._whole[: size % len(self._bytes)]

    def repair(self) -> None:
        data = self._bytes
        for at, old in reversed(self._undo):
            data[at : at + len(old)] = old
        self._undo.clear()
        self._view = self._whole

    def to_bytes(self) -> bytes:
        return self._view.tobytes()


_BYTES = [bytes((value,)) for value in range(256)]
_WORDS = [
    word.to_bytes(8, "little")
    for word in (0, 1, 2, 255, 1 << 15, (1 << 32) - 1, 1 << 32, 1 << 62, 1 << 63, (1 << 64) - 1)
] + [np.float64(value).tobytes() for value in (np.nan, np.inf, -1.0, 1e300)]


def _place(raw: bytes, chosen: random.Random) -> int:
    """An offset: in the header, a chunk's header, the items that chunks use, or anywhere."""
    last = len(raw) - _COPY_BYTES
    kind = chosen.random()
    if kind < 0.12:
        return chosen.randrange(layout.HEADER.itemsize)
    chunk = chosen.randrange(layout.HEADER_BYTES, len(raw), layout.CHUNK_BYTES)
    if kind < 0.32:
        return chunk + chosen.randrange(layout.CHUNK.itemsize)
    if kind < 0.98:
        at = chunk + layout.CHUNK_HEADER_BYTES + int(chosen.expovariate(1 / 150))
        return min(at // 2 * 2 if chosen.random() < 0.7 else at, last)
    return chosen.randrange(last)


@dataclass
class Counts:
    """What a number of segments came to."""

    segments: int = 0
    read: int = 0
    again: int = 0
    """Of the segments, those read with what an earlier read of the same file had found."""
    longest_s: float = 0.0
    """The most processor time of one segment."""
    growth_bytes: int = 0
    """Of memory, since the first batch of the process."""
    reasons: dict[str, int] = field(default_factory=dict)

    def add(self, more: "Counts") -> None:
        self.segments += more.segments
        self.read += more.read
        self.again += more.again
        self.longest_s = max(self.longest_s, more.longest_s)
        self.growth_bytes = max(self.growth_bytes, more.growth_bytes)
        for reason, number in more.reasons.items():
            self.reasons[reason] = self.reasons.get(reason, 0) + number

    def __str__(self) -> str:
        return (
            f"{self.segments:,} segments, {self.read:,} of them read, {self.again:,} as a file "
            f"read before; longest {1000 * self.longest_s:.1f} ms of processor time, memory grew "
            f"by {self.growth_bytes >> 10:,} KiB; refused: {dict(sorted(self.reasons.items()))}"
        )


_begun_bytes = 0
"""This process's memory after its first batch."""


def batch(number: int, seed: int, size: int = BATCH) -> Counts:
    """Reads at least `size` segments. Raises what the reader raises beside SegmentError."""
    global _begun_bytes
    chosen = random.Random(f"{seed}-{number}")
    small, whole, many = (Mutated(raw, chosen) for raw in seeds())
    old = Mutated(gzip.decompress(_OLD.read_bytes()), chosen)
    files = [small] * 7 + [whole] * 7 + [many, old]
    counts = Counts()
    signal.setitimer(signal.ITIMER_VIRTUAL, _BATCH_LIMIT_S)
    while counts.segments < size:
        drawn = chosen.getrandbits(64)
        file = files[drawn & 15]
        try:
            _read(file, drawn >> 4, counts)
            assert counts.longest_s < _SLOW_S, f"{counts.longest_s} s for one segment"
        except BaseException:
            Path("crash-fuzz-segment.bin").write_bytes(file.to_bytes())
            print(f"failed in batch {number} of seed {seed}", file=sys.stderr, flush=True)
            raise
        file.repair()
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
    now_bytes = memory_bytes()
    _begun_bytes = _begun_bytes or now_bytes
    counts.growth_bytes = max(now_bytes - _begun_bytes, 0)
    assert counts.growth_bytes < _GROWTH_BYTES, f"memory grew by {counts.growth_bytes} bytes"
    return counts


def _read(file: Mutated, drawn: int, counts: Counts) -> None:
    """Changes the file and reads it; then mostly again, changed further, with the same dictionary,
    as a pass reads a file that a process writes. Each read counts as a segment."""
    file.change(_CHANGES[drawn & 15])
    if drawn >> 4 & 15 == 0:
        file.cut(drawn >> 16)
    dictionary = Dictionary()
    while True:
        began = time.thread_time()
        counts.segments += 1
        try:
            header = segment.read_header(file.read)
            if drawn >> 8 & 15 == 0:
                file.change(1)  # between two reads of one pass
            found = segment.read_segment(file.read, header, dictionary)
            counts.read += 1
            if drawn >> 12 & 7 == 0:
                _check(found)
        except SegmentError as error:
            counts.reasons[error.reason] = counts.reasons.get(error.reason, 0) + 1
            return
        finally:
            # Processor time, because other programs may run meanwhile.
            counts.longest_s = max(counts.longest_s, time.thread_time() - began)
        drawn >>= 4
        if drawn & 3 == 0:
            return
        file.change(_CHANGES[drawn & 15])
        counts.again += 1


def _check(found: segment.Segment) -> None:
    """The numbers are ones that the host's sums bear, and each row is of a known operator."""
    for values in (found.rows.values, found.rows.bucket_weights):
        assert int(values.max(initial=0)) < bounds.FILE_LIMIT
    assert 0 <= found.overhead_ns < bounds.FILE_LIMIT
    assert found.possible_self_ticks >= 0
    assert np.isfinite(found.variances["calls"]).all()
    assert len(np.unique(found.rows.keys)) == len(found.rows.keys) == len(found.rows.values)
    assert int(found.rows.bucket_row.max(initial=-1)) < len(found.rows.keys)


def reader_version() -> str:
    """Changes with the source of the reader."""
    found = hashlib.sha256()
    for path in sorted(_READER.glob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


def _lines(path: Path) -> list[dict[str, Any]]:
    """The whole lines; one that was cut short as its writer ended is taken away."""
    text = path.read_text()
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole)
    return [json.loads(line) for line in whole.splitlines()]


class Progress:
    """The finished batches of a seed, a line of JSON each, in a file or in memory alone."""

    def __init__(self, path: Path | None, seed: int | None) -> None:
        self._path = path
        known = _lines(path) if path is not None and path.exists() else []
        if seed is not None:
            self.seed = seed
        else:
            self.seed = known[-1]["seed"] if known else random.SystemRandom().randrange(1 << 32)
        self.version = reader_version()
        self.total, self.by_this_reader = Counts(), Counts()
        self.finished: set[int] = set()
        for line in known:
            if line["seed"] == self.seed:
                self._count(line)

    def _count(self, line: dict[str, Any]) -> None:
        self.finished.add(line["batch"])
        made = Counts(**{one.name: line[one.name] for one in fields(Counts)})
        self.total.add(made)
        if line["reader"] == self.version:
            self.by_this_reader.add(made)

    def finish(self, number: int, counts: Counts) -> None:
        line = {"seed": self.seed, "batch": number, "reader": self.version, **asdict(counts)}
        self._count(line)
        if self._path is not None:
            with self._path.open("a") as file:
                file.write(json.dumps(line) + "\n")

    def numbers(self) -> Iterator[int]:
        """The batches to do, without an end."""
        return (number for number in count() if number not in self.finished)


def run(segments: int, seconds: float, processes: int, progress: Progress) -> None:
    """Runs batches until this reader has had so many segments, or the time is over."""
    until = time.monotonic() + seconds
    numbers = progress.numbers()
    running: dict[Future[Counts], int] = {}
    with ProcessPoolExecutor(processes) as pool:
        try:
            while progress.by_this_reader.segments < segments and time.monotonic() < until:
                for number in islice(numbers, processes - len(running)):
                    running[pool.submit(partial(batch, number, progress.seed))] = number
                done, _ = wait(running, until - time.monotonic(), FIRST_COMPLETED)
                for one in done:
                    progress.finish(running[one], one.result())
                    del running[one]
        except BaseException:
            began = sorted(running.values())
            print(f"not finished: batches {began} of seed {progress.seed}", file=sys.stderr)
            raise


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--segments", type=int, default=1 << 60)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--progress", type=Path, help="file to begin or to go on with")
    parser.add_argument("--seed", type=int, help="by default the progress file's, or a random one")
    parser.add_argument("--batch", type=int, help="this batch of the seed alone, in this process")
    given = parser.parse_args()
    progress = Progress(given.progress, given.seed)
    print(f"mutated segments, seed {progress.seed}, reader {progress.version}", flush=True)
    if given.batch is not None:
        print(batch(given.batch, progress.seed))
        return
    run(given.segments, given.seconds, given.processes, progress)
    print(f"no failure: {progress.by_this_reader}")
    if progress.by_this_reader.segments < progress.total.segments:
        print(f"earlier readers included: {progress.total}")


if __name__ == "__main__":
    main()
