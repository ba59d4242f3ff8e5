"""The dictionary of a segment: names of operators and metrics, label sets, API usage, notes.

Entries are only ever appended, so a dictionary remembers how far it has read each chunk and reads
on from there. Text comes from a foreign process and ends up on pages and terminals: what cannot be
printed becomes "?", and what is longer than TEXT_LIMIT is cut.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from opscope.agent import layout
from opscope.agent.segment_file import SegmentError

if TYPE_CHECKING:
    from opscope.agent.shape import Keys, Lines

TEXT_LIMIT = 256
_ALIGN = 8
# Entries of each kind: as many as the recorder makes, or more. A note's new value is a new entry.
_LIMITS = {
    layout.ENTRY_OP: 65_536,
    layout.ENTRY_LABELS: 1024,
    layout.ENTRY_USAGE: 16_384,
    layout.ENTRY_NOTE: 16_384,
    layout.ENTRY_METRIC: 4096,
}
# Of Python's objects for an entry, beside its text.
_ENTRY_BYTES = 200

_ENTRY = layout.struct_of(layout.ENTRY)

Labels = tuple[tuple[str, str], ...]


class Dictionary:
    """What a segment's dictionary chunks said up to now."""

    def __init__(self) -> None:
        self.ops: dict[int, str] = {layout.OTHER_OP_ID: layout.OTHER_OP}
        """Name by id, with the overload behind a dot where there is one."""
        self.extra_costs_ps: dict[int, int] = {}
        """By id, of those operators whose ranges cost more than `record_cost_ps`: what more."""
        self.labels: dict[int, Labels] = {0: ()}
        self.usage: dict[str, None] = {}
        """Keys of the APIs used, in order."""
        self.notes: dict[str, str] = {}
        self.metrics: dict[int, tuple[str, str, int]] = {}
        """Name, label and kind by number."""
        self.read_bytes: dict[int, int] = {}
        """By chunk index: how many bytes of entries are taken in."""
        self.keys: Keys | None = None
        """Those of the segment's cells when it was last read, all of which are in here."""
        self.lines: Lines | None = None
        """Those of these cells."""
        self.nbytes = 0
        """Memory that this takes, about."""
        self._counts: dict[int, int] = {}

    def take(self, chunk: int, entries: bytes) -> None:
        """Takes in the bytes of `chunk` that follow those already read: whole entries.

        Raises SegmentError("corrupt") where they are not.
        """
        at = 0
        while at < len(entries):
            if at + _ENTRY.size > len(entries):
                raise SegmentError("corrupt", "an entry is cut short")
            kind, detail, number, size, extra_cost_ps = _ENTRY.unpack_from(entries, at)
            start = at + _ENTRY.size
            at = start + (size + _ALIGN - 1) // _ALIGN * _ALIGN
            if at > len(entries):
                raise SegmentError("corrupt", f"an entry of {size} bytes does not fit")
            self._add(kind, detail, number, entries[start : start + size])
            if kind == layout.ENTRY_OP and extra_cost_ps:
                self.extra_costs_ps[number] = extra_cost_ps
        self.read_bytes[chunk] = self.read_bytes.get(chunk, 0) + len(entries)

    def _add(self, kind: int, detail: int, number: int, raw: bytes) -> None:
        if kind in _LIMITS:
            self.nbytes += len(raw) + _ENTRY_BYTES
            count = self._counts[kind] = self._counts.get(kind, 0) + 1
            if count > _LIMITS[kind]:
                raise SegmentError("too-much", f"more than {_LIMITS[kind]} entries of kind {kind}")
        if kind == layout.ENTRY_OP:
            name, overload = _texts(raw, 2)
            # One copy for all processes that run the operator.
            self.ops[number] = sys.intern(f"{name}.{overload}" if overload else name)
        elif kind == layout.ENTRY_LABELS:
            texts = _texts(raw)
            if len(texts) % 2:
                raise SegmentError("corrupt", "a label without a value")
            self.labels[number] = tuple(zip(texts[::2], texts[1::2], strict=True))
        elif kind == layout.ENTRY_USAGE:
            self.usage[_texts(raw, 1)[0]] = None
        elif kind == layout.ENTRY_NOTE:
            key, value = _texts(raw, 2)
            self.notes[key] = value
        elif kind == layout.ENTRY_METRIC:
            name, label = _texts(raw, 2)
            self.metrics[number] = (sys.intern(name), label, detail)


def _texts(raw: bytes, count: int | None = None) -> list[str]:
    texts = raw.decode(errors="replace").split("\0")
    if texts.pop():
        raise SegmentError("corrupt", "text without an end")
    if count is not None and len(texts) != count:
        raise SegmentError("corrupt", f"{len(texts)} texts in place of {count}")
    return [
        text if text.isprintable() and len(text) <= TEXT_LIMIT else _printable(text)
        for text in texts
    ]


def _printable(text: str) -> str:
    text = "".join(c if c.isprintable() else "?" for c in text[: TEXT_LIMIT + 1])
    return text if len(text) <= TEXT_LIMIT else text[: TEXT_LIMIT - 1] + "…"
