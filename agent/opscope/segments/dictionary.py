"""The dictionary of a segment: names of operators and metrics, label sets, API usage, notes.

Entries are append-only, so a dictionary remembers the length read of each chunk and continues from
there. Text comes from another process and is shown on pages and terminals: unprintable characters
become "?", and text longer than TEXT_LIMIT is cut.
"""

from __future__ import annotations

from opscope.printable import printable
from opscope.segments import layout
from opscope.segments.chunks import Head
from opscope.segments.segment_file import SegmentError
from opscope.segments.shape import Keys, Lines
from opscope.segments.shared import shared

TEXT_LIMIT = 256
LABELS_LIMIT = 2
"""Labels in one set; the recorder makes no more. A larger set could exceed a scrape's
`label_limit`, and Prometheus then drops the samples of all processes."""
_ALIGN = 8
# Entries of each kind, at least as many as the recorder makes. A note's new value is a new entry.
_LIMITS = {
    layout.ENTRY_OP: 65_536,
    layout.ENTRY_LABELS: 1024,
    layout.ENTRY_USAGE: 16_384,
    layout.ENTRY_NOTE: 16_384,
    layout.ENTRY_METRIC: 4096,
}
# Limit of all unknown kinds together, which a later version may have.
_UNKNOWN, _UNKNOWN_LIMIT = -1, 65_536
# Memory of the Python objects of an entry, beside its text, in bytes.
_ENTRY_BYTES = 200

_ENTRY = layout.struct_of(layout.ENTRY)

Labels = tuple[tuple[str, str], ...]


class Dictionary:
    """The entries read so far from a segment's dictionary chunks."""

    def __init__(self) -> None:
        self.ops: dict[int, str] = {layout.OTHER_OP_ID: layout.OTHER_OP}
        """Name by id; an overload follows after a dot."""
        self.extra_costs_ps: dict[int, int] = {}
        """By operator id: the cost of a range beyond `record_cost_ps`, in ps, if there is any."""
        self.labels: dict[int, Labels] = {0: ()}
        self.usage: dict[str, None] = {}
        """Keys of the APIs used, in their order."""
        self.notes: dict[str, str] = {}
        self.metrics: dict[int, tuple[str, str, int]] = {}
        """Name, label and kind by number."""
        self.read_bytes: dict[int, int] = {}
        """By chunk index: the number of bytes read."""
        self.heads: list[Head] = []
        """The starts of the segment's chunks at the last read."""
        self.keys: Keys | None = None
        """The keys of the segment's cells at the last read; the dictionary has all of them."""
        self.lines: Lines | None = None
        """The lines of these cells."""
        self.has_cut_labels = False
        """Whether a label set had more than LABELS_LIMIT labels."""
        self.nbytes = 0
        """Approximate memory size, in bytes."""
        self._counts: dict[int, int] = {}

    def take(self, chunk: int, entries: bytes) -> None:
        """Adds the bytes of `chunk` that follow those already read: whole entries.

        Raises SegmentError("corrupt") for anything else.
        """
        at = 0
        while at < len(entries):
            if at + _ENTRY.size > len(entries):
                raise SegmentError("corrupt", "truncated entry")
            kind, detail, number, size, extra_cost_ps = _ENTRY.unpack_from(entries, at)
            start = at + _ENTRY.size
            at = start + (size + _ALIGN - 1) // _ALIGN * _ALIGN
            if at > len(entries):
                raise SegmentError("corrupt", f"an entry of {size} bytes does not fit")
            self._add(kind, detail, number, entries[start : start + size])
            if kind == layout.ENTRY_OP and extra_cost_ps:
                self.extra_costs_ps[shared(number)] = shared(extra_cost_ps)
        self.read_bytes[chunk] = self.read_bytes.get(chunk, 0) + len(entries)

    def _add(self, kind: int, detail: int, number: int, raw: bytes) -> None:
        limit = _LIMITS.get(kind, _UNKNOWN_LIMIT)
        counted = kind if kind in _LIMITS else _UNKNOWN
        count = self._counts[counted] = self._counts.get(counted, 0) + 1
        if count > limit:
            raise SegmentError("too-much", f"more than {limit} entries of kind {kind}")
        if kind in _LIMITS:
            self.nbytes += len(raw) + _ENTRY_BYTES
        if kind == layout.ENTRY_OP:
            name, overload = _texts(raw, 2)
            # All processes that run the operator share one copy of its name and number.
            self.ops[shared(number)] = shared(f"{name}.{overload}" if overload else name)
        elif kind == layout.ENTRY_LABELS:
            texts = _texts(raw)
            if len(texts) % 2:
                raise SegmentError("corrupt", "a label without a value")
            pairs = tuple(zip(texts[::2], texts[1::2], strict=True))
            self.has_cut_labels |= len(pairs) > LABELS_LIMIT
            self.labels[number] = pairs[:LABELS_LIMIT]
        elif kind == layout.ENTRY_USAGE:
            self.usage[_texts(raw, 1)[0]] = None
        elif kind == layout.ENTRY_NOTE:
            key, value = _texts(raw, 2)
            self.notes[key] = value
        elif kind == layout.ENTRY_METRIC:
            name, label = _texts(raw, 2)
            self.metrics[number] = (shared(name), label, detail)


def _texts(raw: bytes, count: int | None = None) -> list[str]:
    texts = raw.decode(errors="replace").split("\0")
    if texts.pop():
        raise SegmentError("corrupt", "unterminated text")
    if count is not None and len(texts) != count:
        raise SegmentError("corrupt", f"{len(texts)} texts instead of {count}")
    return [
        text if text.isprintable() and len(text) <= TEXT_LIMIT else _printable(text)
        for text in texts
    ]


def _printable(text: str) -> str:
    text = printable(text[: TEXT_LIMIT + 1])
    return text if len(text) <= TEXT_LIMIT else text[: TEXT_LIMIT - 1] + "…"
