"""The sums of dead processes, and the files that are in them: what an agent leaves to the next one.

One file, replaced whole, so that it is there as it was or as it is. It is written before the files
of the dead are removed and names them: whatever moment the agent ends at, a process is in these
sums, or in its file, or in both and then named, so that its file is only removed. Nothing is lost,
nothing counted twice, and counters go on with the start they had.

It is of one boot, as segments are, and of one limit of series. A state that cannot be read, or of
another boot or limit, is worth nothing; counters then start anew, and say so by their start time.

This file has the format; where it is kept is in state_file.py.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from opscope.agent import layout
from opscope.agent.layout import U64
from opscope.agent.measures import MeasureTable
from opscope.agent.snapshot import COUNTER_COLUMNS, Health, SeriesKey
from opscope.agent.tables import Tables
from opscope.agent.totals import Sums
from opscope.errors import OpscopeError

_MAGIC = b"OPSCOPE STATE\0\0\0"
_VERSION = 1
# Version, checksum of what follows the head, its length, of that the text's.
_HEAD = struct.Struct("<16sIIQQ")
_BUCKET = np.dtype([("series", "<u4"), ("octave", "<u4"), ("weights", "<u8", (8,))])


class StateError(OpscopeError):
    """A state that is of no use; the text says why."""


@dataclass
class State:
    boot_id: bytes
    tables: Tables
    dead: Sums
    """Of processes whose files are taken in."""
    self_ns: U64
    """(n,) the self time that each series had at most, which it must not fall below."""
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Reasons of the ledger that are taken in."""
    bad: Counter[tuple[str]] = field(default_factory=Counter)
    taken: dict[str, set[str]] = field(default_factory=dict)
    """By directory, files that are in the sums and may still be there."""

    @classmethod
    def none(cls, boot_id: bytes, max_series: int) -> State:
        return cls(boot_id, Tables(max_series), Sums.none(), np.zeros(0, np.uint64))


def encode(state: State) -> bytes:
    dead, tables = state.dead, state.tables
    row, octave = np.nonzero(dead.buckets.any(axis=2))
    buckets = np.zeros(len(row), _BUCKET)
    buckets["series"], buckets["octave"] = row, octave + dead.first_octave
    buckets["weights"] = dead.buckets[row, octave]
    text = json.dumps(
        {
            "boot_id": state.boot_id.hex(),
            "max_series": tables.series.limit,
            "series": [key[:4] for key in tables.series.keys],
            "created_unix_ns": tables.series.created_unix_ns,
            "earliest_unix_ns": tables.series.earliest_unix_ns,
            "pairs": tables.measures.pairs(),
            "usage_keys": tables.usage.known(),
            "result_names": tables.results.known(),
            "health": dead.health,
            "usage": _items(dead.usage),
            "attach_results": _items(dead.attach_results),
            "measured": [[name, *pair, n] for (name, pair), n in dead.measured.items()],
            "folded_rows": dead.folded_rows,
            "refused": _items(state.refused),
            "bad": _items(state.bad),
            "taken": {path: sorted(names) for path, names in state.taken.items() if names},
            "counters": len(dead.counters),
            "self": len(state.self_ns),
            "buckets": len(buckets),
        }
    ).encode()
    body = b"".join(
        (
            text,
            dead.counters.astype("<u8").tobytes(),
            state.self_ns.astype("<u8").tobytes(),
            buckets.tobytes(),
        )
    )
    return _HEAD.pack(_MAGIC, _VERSION, zlib.crc32(body), len(body), len(text)) + body


def _items(counts: Mapping[Any, int]) -> list[list[Any]]:
    """Counts by some words, with the words before the count."""
    return [[*key, count] for key, count in counts.items()]


def decode(raw: bytes) -> State:
    """Raises StateError for whatever is not a whole state."""
    if len(raw) < _HEAD.size:
        raise StateError(f"it is cut short at {len(raw)} bytes")
    magic, version, checksum, size, text_size = _HEAD.unpack_from(raw)
    body = memoryview(raw)[_HEAD.size :]
    if magic != _MAGIC:
        raise StateError("it is no state of an agent")
    if version != _VERSION:
        raise StateError(f"its version is {version}, not {_VERSION}")
    if size != len(body) or zlib.crc32(body) != checksum:
        raise StateError("it is damaged")
    try:
        return _decode(json.loads(bytes(body[:text_size])), body[text_size:])
    # RecursionError is one of RuntimeError: of a text that only somebody else would write.
    except RecursionError as error:
        raise StateError("it is nested too deep") from error
    # Whatever a text that is no state's leads to.
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise StateError(f"it is not as an agent writes it ({error})") from error


def _decode(facts: dict[str, Any], arrays: memoryview) -> State:
    tables = Tables(_count(facts["max_series"]))
    series = tables.series
    created = [_count(one) for one in facts["created_unix_ns"]]
    for (service, op, phase, labels), created_unix_ns in zip(facts["series"], created, strict=True):
        pairs = tuple((_text(name), _text(value)) for name, value in labels)
        series.add(SeriesKey(_text(service), _text(op), _text(phase), pairs), created_unix_ns)
    series.earliest_unix_ns = _count(facts["earliest_unix_ns"])
    tables.measures = MeasureTable((_text(a), _text(b)) for a, b in facts["pairs"])
    tables.usage.take(map(_text, facts["usage_keys"]))
    tables.results.take(map(_text, facts["result_names"]))

    rows, held, octaves = (_count(facts[name]) for name in ("counters", "self", "buckets"))
    sizes = (rows * COUNTER_COLUMNS * 8, held * 8, octaves * _BUCKET.itemsize)
    if max(rows, held) > len(series.keys) or sum(sizes) != len(arrays):
        raise ValueError("sizes")
    counters = np.frombuffer(arrays[: sizes[0]], "<u8").reshape(rows, COUNTER_COLUMNS)
    self_ns = np.frombuffer(arrays[sizes[0] : sizes[0] + sizes[1]], "<u8")
    buckets = np.frombuffer(arrays[sizes[0] + sizes[1] :], _BUCKET)
    dense, first_octave = _dense(buckets, rows)
    dead = Sums(
        counters.astype(np.uint64),
        dense,
        first_octave,
        Health(*(_count(one) for one in facts["health"])),
        _counter(facts["usage"], 2),
        _counter(facts["attach_results"], 2),
        Counter(
            {(_text(name), (_text(a), _text(b))): _count(n) for name, a, b, n in facts["measured"]}
        ),
        _count(facts["folded_rows"]),
    )
    return State(
        boot_id=bytes.fromhex(facts["boot_id"]),
        tables=tables,
        dead=dead,
        self_ns=self_ns.astype(np.uint64),
        refused=_counter(facts["refused"], 2),
        bad=_counter(facts["bad"], 1),
        taken={path: set(map(_name, names)) for path, names in facts["taken"].items()},
    )


def _dense(buckets: Any, rows: int) -> tuple[U64, int]:
    if not len(buckets):
        return np.zeros((rows, 0, layout.BUCKETS_PER_OCTAVE), np.uint64), 0
    if buckets["series"].max() >= rows or buckets["octave"].max() >= layout.OCTAVES:
        raise ValueError("buckets")
    first = int(buckets["octave"].min())
    width = int(buckets["octave"].max()) + 1 - first
    dense = np.zeros((rows, width, layout.BUCKETS_PER_OCTAVE), np.uint64)
    dense[buckets["series"], buckets["octave"] - first] = buckets["weights"]
    return dense, first


def _counter(items: Iterable[list[Any]], words: int) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for *key, count in items:
        if len(key) != words:
            raise ValueError("words")
        found[tuple(map(_text, key))] = _count(count)
    return found


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _name(value: object) -> str:
    name = _text(value)
    if "/" in name or "\0" in name:
        raise ValueError(f"{name!r} is no name of a file")
    return name


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 63:
        raise TypeError(f"{value!r} is no count")
    return value
