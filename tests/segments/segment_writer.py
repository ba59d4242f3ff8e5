"""Build valid segment files from lists of ranges, for tests of readers.

Independent of the C writer, except that both use the layout in opscope/segment.h. This file finds
the bucket of a duration with floating-point logarithms, so that the two check each other.
"""

import math
import os
import struct
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from opscope.segments import layout

TICKS_PER_SECOND = 1_000_000_000
PHASE_FORWARD = 1
PHASE_BACKWARD = 2


@dataclass(frozen=True)
class Range:
    """`count` ranges of one kind. `self_s` None: unknown self time."""

    op: str
    duration_s: float
    count: int = 1
    weight: float = 1.0
    self_s: float | None = None
    phase: int = PHASE_FORWARD
    labels: tuple[tuple[str, str], ...] = ()
    failed: bool = False
    bytes: int = 0
    table: int = 0


@dataclass
class Process:
    """A process that writes a segment; by default this one."""

    pid: int = field(default_factory=os.getpid)
    process_start: int = field(default_factory=lambda: start_of("self"))
    boot_id: bytes = field(default_factory=lambda: own_boot_id())
    pid_namespace: int = field(default_factory=lambda: os.stat("/proc/self/ns/pid").st_ino)
    random_id: bytes = field(default_factory=lambda: os.urandom(16))

    @property
    def file_name(self) -> str:
        random = int.from_bytes(self.random_id[:8], "little")
        return f"{self.pid}-{self.process_start}-{random:016x}.seg"


def start_of(pid: int | str) -> int:
    """When a process started, in clock ticks since boot."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def own_boot_id() -> bytes:
    return bytes.fromhex(Path("/proc/sys/kernel/random/boot_id").read_text().replace("-", ""))


def bucket_of(duration_s: float) -> tuple[int, int]:
    """(octave, bucket) of a duration, by logarithm."""
    index = math.floor(math.log2(duration_s) * 8)
    return index // 8 + layout.SECOND_LOG2, index % 8


class SegmentWriter:
    """Chunks in the order of their first use, as the recorder makes them."""

    def __init__(self, process: Process | None = None, **header: Any) -> None:
        self.process = process or Process()
        self.header: dict[str, Any] = header
        self._chunks: list[tuple[int, int, int, int, bytes]] = []
        self._entries: list[bytes] = []
        self._ops: dict[str, int] = {}
        self._labels: dict[tuple[tuple[str, str], ...], int] = {(): 0}
        self._cells: dict[int, dict[int, np.ndarray]] = {}
        self._lines: dict[int, list[np.ndarray]] = {}
        self._metrics: dict[tuple[str, str], int] = {}
        self._variances: dict[int, np.ndarray] = {}
        self._off_cpu: dict[int, np.ndarray] = {}

    def entry(
        self, kind: int, number: int, *texts: str, detail: int = 0, extra_cost_ps: int = 0
    ) -> None:
        raw = b"".join(text.encode() + b"\0" for text in texts)
        head = struct.pack("<HHIII", kind, detail, number, len(raw), extra_cost_ps)
        self._entries.append(head + raw + b"\0" * (-len(raw) % 8))

    def note(self, key: str, value: str) -> None:
        self.entry(layout.ENTRY_NOTE, 0, key, value)

    def notes(self, notes: Mapping[str, str]) -> None:
        for key, value in notes.items():
            self.note(key, value)

    def usage(self, key: str) -> None:
        self.entry(layout.ENTRY_USAGE, 0, key)

    def metric(self, name: str, label: str, value: int, kind: int) -> None:
        """Sets the value; the first one registers the metric."""
        if (name, label) not in self._metrics:
            self.entry(layout.ENTRY_METRIC, len(self._metrics), name, label, detail=kind)
        self._metrics[name, label] = value

    def op_id(self, name: str, extra_cost_ps: int = 0) -> int:
        """The id of the operator, which the first call adds."""
        if name not in self._ops:
            self._ops[name] = layout.OTHER_OP_ID + 1 + len(self._ops)
            number = self._ops[name]
            self.entry(layout.ENTRY_OP, number, name, "", extra_cost_ps=extra_cost_ps)
        return self._ops[name]

    def _labels_id(self, labels: tuple[tuple[str, str], ...]) -> int:
        if labels not in self._labels:
            self._labels[labels] = len(self._labels)
            self.entry(layout.ENTRY_LABELS, self._labels[labels], *sum(labels, ()))
        return self._labels[labels]

    def add(self, ranges: Iterable[Range]) -> "SegmentWriter":
        for one in ranges:
            self._add(one)
        return self

    def _add(self, one: Range) -> None:
        key = self.op_id(one.op) | one.phase << 32 | self._labels_id(one.labels) << 40
        cell = self._cells.setdefault(one.table, {}).setdefault(key, np.zeros(1, layout.CELL))[0]
        weight = round(one.weight * layout.WEIGHT_ONE) * one.count
        cell["key"] = key
        cell["sample_count"] += one.count
        cell["weight"] += weight
        cell["total_ticks"] += self._ticks(one.duration_s, one)
        if one.self_s is not None:
            cell["whole_ticks"] += self._ticks(one.duration_s, one)
            cell["self_ticks"] += self._ticks(one.self_s, one)
        if one.failed:
            cell["error_weight"] += weight
        cell["bytes"] += round(one.bytes * one.weight) * one.count
        octave, bucket = bucket_of(one.duration_s)
        lines = self._lines.setdefault(one.table, [])
        if cell["octave_line"][octave] == 0:
            lines.append(np.zeros(8, np.uint64))
            cell["octave_line"][octave] = len(lines)
        lines[cell["octave_line"][octave] - 1][bucket] += weight

    def _ticks(self, seconds: float, one: Range) -> int:
        rate: int = self.header.get("ticks_per_second", TICKS_PER_SECOND)
        return round(seconds * rate * one.weight * one.count)

    def variance(
        self,
        op: str | None,
        calls: float,
        self_s2: float = 0.0,
        *,
        phase: int = PHASE_FORWARD,
        labels: tuple[tuple[str, str], ...] = (),
        calls_squared: float = 0.0,
        owed: tuple[float, float] = (0.0, 0.0),
    ) -> None:
        """States the errors of the estimates for a key; `op` None: for all of the phase.

        `calls_squared`: the sum of the squares of the windows' calls; `owed`: the parts of both
        variances for work that no window represents yet."""
        rate: int = self.header.get("ticks_per_second", TICKS_PER_SECOND)
        key = (self.op_id(op) if op else 0) | phase << 32 | self._labels_id(labels) << 40
        entry = np.zeros(1, layout.VARIANCE)
        entry["key"], entry["window_count"], entry["calls"] = key, 2, calls
        entry["self_ticks"] = entry["total_ticks"] = self_s2 * rate**2
        entry["calls_squared"] = calls_squared
        entry["calls_owed"], entry["self_owed"] = owed[0], owed[1] * rate**2
        self._variances[key] = entry

    def off_cpu(
        self,
        op: str | None,
        self_s: float,
        total_s: float,
        self_s2: float = 0.0,
        *,
        phase: int = PHASE_FORWARD,
        labels: tuple[tuple[str, str], ...] = (),
        owed: float = 0.0,
        count: int = 0,
        exact_s: float = 0.0,
    ) -> None:
        """States how much off-CPU time the estimates for a key contain, and the variance of the
        self time without it; `op` None: for all of the phase."""
        rate: int = self.header.get("ticks_per_second", TICKS_PER_SECOND)
        key = (self.op_id(op) if op else 0) | phase << 32 | self._labels_id(labels) << 40
        entry = np.zeros(1, layout.OFF_CPU)
        entry["key"], entry["self_ticks"], entry["total_ticks"] = key, self_s * rate, total_s * rate
        entry["variance"], entry["owed"] = self_s2 * rate**2, owed * rate**2
        entry["count"], entry["exact_ticks"] = count, exact_s * rate
        self._off_cpu[key] = entry

    def _chunk_list(self) -> list[tuple[int, int, int, int, bytes]]:
        """(kind, table, first, used, items) of each chunk."""
        chunks = []
        room: list[bytes] = []
        for entry in [*self._entries, b""]:
            if room and (not entry or sum(map(len, [*room, entry])) > layout.ROOM_BYTES):
                items = b"".join(room)
                chunks.append((layout.DICTIONARY, 0, 0, len(items), items))
                room = []
            room.append(entry)
        for table, cells in self._cells.items():
            raw = [cell.tobytes() for cell in cells.values()]
            chunks += _split(layout.CELLS, table, raw, layout.CELLS_PER_CHUNK)
        for table, lines in self._lines.items():
            raw = [line.tobytes() for line in lines]
            chunks += _split(layout.LINES, table, raw, layout.LINES_PER_CHUNK)
        raw = [struct.pack("<Q", value) for value in self._metrics.values()]
        chunks += _split(layout.METRICS, 0, raw, layout.METRICS_PER_CHUNK)
        raw = [entry.tobytes() for entry in self._variances.values()]
        chunks += _split(layout.VARIANCES, 0, raw, layout.VARIANCES_PER_CHUNK)
        raw = [entry.tobytes() for entry in self._off_cpu.values()]
        chunks += _split(layout.OFF_CPU_TIMES, 0, raw, layout.OFF_CPU_PER_CHUNK)
        return chunks

    def to_bytes(self) -> bytes:
        chunks = self._chunk_list()
        process = self.process
        header = np.zeros(1, layout.HEADER)
        fields = {
            "magic": b"OPSCOPE\0",
            "version": layout.VERSION,
            "header_bytes": layout.HEADER_BYTES,
            "chunk_bytes": layout.CHUNK_BYTES,
            "chunk_limit": layout.CHUNK_LIMIT,
            "chunk_count": len(chunks),
            "state": layout.LIVE,
            "boot_id": np.frombuffer(process.boot_id, np.uint8),
            "random_id": np.frombuffer(process.random_id, np.uint8),
            "pid_namespace": process.pid_namespace,
            "pid": process.pid,
            "process_start": process.process_start,
            "uid": os.geteuid(),
            "clock_source": layout.CLOCK_SOURCES[-1],
            "ticks_per_second": TICKS_PER_SECOND,
            "created_unix_ns": time.time_ns(),
            "sampling_prob_ppt": 10**12,
            **self.header,
        }
        for name, value in fields.items():
            header[name] = value
        out = bytearray(header.tobytes().ljust(layout.HEADER_BYTES, b"\0"))
        for kind, table, first, used, items in chunks:
            head = struct.pack("<IIII", kind, table, first, used)
            out += head.ljust(layout.CHUNK_HEADER_BYTES, b"\0")
            out += items.ljust(layout.ROOM_BYTES, b"\0")
        return bytes(out)

    def write(self, directory: Path) -> Path:
        """Writes or replaces the file in place, like a process that continues to write."""
        path = directory / self.process.file_name
        if path.exists():
            with path.open("r+b") as file:
                file.write(self.to_bytes())
        else:
            path.write_bytes(self.to_bytes())
        return path


def _split(
    kind: int, table: int, items: list[bytes], capacity: int
) -> list[tuple[int, int, int, int, bytes]]:
    return [
        (kind, table, first, len(part), b"".join(part))
        for first in range(0, len(items), capacity)
        for part in [items[first : first + capacity]]
    ]
