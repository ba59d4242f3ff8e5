"""Write traces byte for byte like the tracer in C, for tests of readers."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from opscope._native import ffi
from opscope.timeline import layout
from opscope.timeline.reader import Trace


def _pack(name: str, **fields: object) -> bytes:
    return bytes(ffi.buffer(ffi.new(f"{name} *", fields)))


class ThreadWriter:
    """The records of one thread, in one block."""

    def __init__(self, trace: TraceWriter, thread_id: int, lost: int, taken: tuple[int, int]):
        self._trace = trace
        self._thread_id = thread_id
        self._lost = lost
        self._taken = taken
        self._records: list[bytes] = []

    def _add(self, words: bytes, **fields: object) -> ThreadWriter:
        words += bytes(-len(words) % 8)
        self._records.append(_pack("opscope_trace_record", more=len(words) // 8, **fields) + words)
        return self

    def range(
        self,
        name: str,
        start: int,
        end: int,
        *,
        sequence_nr: int = -1,
        forward_thread_id: int = 0,
        phase: int = 0,
        flags: int = 0,
        scope: int = 0,
        shapes: Sequence[Sequence[int] | None] | None = None,
    ) -> ThreadWriter:
        op = self._trace.op(self, name, scope)
        words = b""
        if sequence_nr >= 0 or forward_thread_id or shapes is not None:
            words = struct.pack("<qQ", sequence_nr, forward_thread_id)
        if shapes is not None:
            sizes = [n for one in shapes for n in ((-1,) if one is None else (len(one), *one))]
            words += struct.pack(f"<{1 + len(sizes)}q", len(sizes), *sizes)
        return self._add(
            words,
            start_ticks=start,
            end_ticks=end,
            op=op,
            kind=layout.RANGE,
            phase=phase,
            flags=flags,
        )

    def name(self, op: int, name: str, scope: int) -> None:
        text = name.encode() + b"\0\0"
        self._add(text, start_ticks=1, op=op, kind=layout.NAME, flags=scope)

    def labels(self, **labels: str) -> ThreadWriter:
        text = b"".join(f"{key}\0{value}\0".encode() for key, value in labels.items())
        return self._add(text, start_ticks=1, kind=layout.LABELS)

    def number(self, kind: int, start: int, end: int, number: int) -> ThreadWriter:
        words = struct.pack("<Q", number)
        return self._add(words, start_ticks=start, end_ticks=end, kind=kind)

    def to_bytes(self) -> bytes:
        records = b"".join(self._records)
        size = -(-(layout.BLOCK.size + len(records)) // layout.BLOCK_UNIT) * layout.BLOCK_UNIT
        head = _pack(
            "opscope_trace_block",
            bytes=size,
            thread_id=self._thread_id,
            system_id=1000 + self._thread_id,
            lost_count=self._lost,
            taken_ticks=self._taken[0],
            ready_ticks=self._taken[1],
            thread_name=b"thread",
        )
        return (head + records).ljust(size, b"\0")


class TraceWriter:
    """One tick is one nanosecond unless the header says otherwise."""

    def __init__(self, **header: object) -> None:
        self._header = header
        self._threads: list[ThreadWriter] = []
        self._ops: dict[str, int] = {}

    def thread(
        self, thread_id: int = 1, lost: int = 0, taken: tuple[int, int] = (1, 1)
    ) -> ThreadWriter:
        self._threads.append(ThreadWriter(self, thread_id, lost, taken))
        return self._threads[-1]

    def op(self, thread: ThreadWriter, name: str, scope: int) -> int:
        if name not in self._ops:
            self._ops[name] = len(self._ops) + 2
            thread.name(self._ops[name], name, scope)
        return self._ops[name]

    def to_bytes(self) -> bytes:
        blocks = b"".join(thread.to_bytes() for thread in self._threads)
        fields = {
            "magic": b"OPTRACE\0",
            "version": layout.VERSION,
            "header_bytes": layout.HEADER_BYTES,
            "block_unit": layout.BLOCK_UNIT,
            "record_bytes": layout.RECORD.size,
            "state": layout.CLOSED,
            "pid": 42,
            "clock_source": layout.CLOCK_SOURCES[0],
            "ticks_per_second": 10**9,
            "anchor_ticks": 1,
            "anchor_unix_ns": 10**18,
            "limit_bytes": layout.HEADER_BYTES + len(blocks),
            "claimed_bytes": len(blocks),
        }
        header = _pack("opscope_trace_header", **{**fields, **self._header})
        return header.ljust(layout.HEADER_BYTES, b"\0") + blocks

    def trace(self) -> Trace:
        return trace_of(self.to_bytes())


def trace_of(raw: bytes) -> Trace:
    return Trace(lambda offset, size: raw[offset : offset + size])
