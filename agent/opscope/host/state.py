"""The state that one agent leaves to the next: sums of ended processes, and the files in them.

The state is one file, replaced atomically. The agent writes it before it removes the files of ended
processes, and the state names those files. So whenever the agent stops, a process is in the sums,
in its file, or in both; in the last case the state names the file, which is then only removed.
Nothing is lost or counted twice, and counters keep their start time.

A state belongs to one boot, as segments do, and to one limit of series. An unreadable state, or one
of another boot or limit, is discarded; counters then restart and show a new start time.

New facts and arrays may be appended without a new version: an earlier agent ignores them, and a
later agent accepts a state without them and starts their sums at zero. A new version marks a state
that agents of this version must not continue.

This module defines the format; state_file.py stores it.
"""

from __future__ import annotations

import json
import math
import struct
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from opscope.errors import OpscopeError
from opscope.host import processor_time
from opscope.host.bounded_names import NOBODY, BoundedNames
from opscope.host.division import Owner
from opscope.host.health import Health
from opscope.host.key_tables import KeyTables
from opscope.host.moved_rows import MovedRows, from_facts
from opscope.host.process_metrics import MeasureTable
from opscope.host.processor_time import ServiceTime
from opscope.host.snapshot import COUNTER_COLUMNS, SeriesKey
from opscope.host.totals import Sums
from opscope.segments import layout, variance
from opscope.segments.dictionary import Labels
from opscope.segments.layout import U64
from opscope.segments.variance import F64, Parts, PhaseVariance, PhaseVariances

_MAGIC = b"OPSCOPE STATE\0\0\0"
_VERSION = 1
# Version, checksum of the bytes after the head, their length, and the length of the text in them.
_HEAD = struct.Struct("<16sIIQQ")
# The number of Health's fields that earlier agents accept.
_HEALTH_AT_FIRST = 6
_PROCESSOR_TIMES = {"waited_ns": processor_time.WAITED, "used_ns": processor_time.USED}
_BUCKET = np.dtype([("series", "<u4"), ("octave", "<u4"), ("weights", "<u8", (8,))])


class StateError(OpscopeError):
    """An unusable state; the text has the reason."""


@dataclass
class Held:
    """Exported values of estimates that may fall a little; exports must not fall below them."""

    times_ns: U64
    """(n, 2) self and total time, one row for each series."""
    variances: F64
    """(m, variance.COLUMNS) one row for each series."""
    overhead_ns: int
    processor_ns: Mapping[ServiceTime, int] = field(default_factory=dict)
    """Time on a processor and time waiting for one."""

    @classmethod
    def none(cls) -> Held:
        return cls(np.zeros((0, 2), np.uint64), np.zeros((0, variance.COLUMNS)), 0)

    def make_room(self, count: int) -> None:
        """Extends the arrays to `count` series; new ones start at zero."""
        times_ns = np.zeros((count, 2), np.uint64)
        times_ns[: len(self.times_ns)] = self.times_ns
        self.times_ns, self.variances = times_ns, variance.rows_of(count, self.variances)

    def marks(self) -> object:
        """A value that changes whenever the contents change, but for the waiting: every process
        waits a little in each pass, and a crash may lose that."""
        return self.times_ns.tobytes(), self.variances.tobytes(), self.overhead_ns


@dataclass
class State:
    boot_id: bytes
    tables: KeyTables
    dead: Sums
    """Counts of processes whose files are in the sums."""
    held: Held = field(default_factory=Held.none)
    refused: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Finished ledger entries, by reason."""
    bad: Counter[tuple[str]] = field(default_factory=Counter)
    taken: dict[str, set[str]] = field(default_factory=dict)
    """By directory, files that are in the sums and may still exist."""
    moved: dict[str, dict[str, MovedRows]] = field(default_factory=dict)
    """By directory and file of a live process, its rows under `other`."""

    @classmethod
    def none(cls, boot_id: bytes, max_series: int) -> State:
        return cls(boot_id, KeyTables(max_series), Sums.none())


def encode(state: State) -> bytes:
    dead, tables, held = state.dead, state.tables, state.held
    # Series numbers are private to this agent; the state numbers them without gaps.
    rows = tables.series.rows
    of_dead = rows[rows < len(dead.counters)]
    counters, times_ns = dead.counters[of_dead], held.times_ns[rows[rows < len(held.times_ns)]]
    variances = dead.variances[of_dead]
    held_variances = held.variances[rows[rows < len(held.variances)]]
    row_of = {number: row for row, number in enumerate(rows.tolist())}
    weights = dead.buckets[of_dead]
    row, octave = np.nonzero(weights.any(axis=2))
    buckets = np.zeros(len(row), _BUCKET)
    buckets["series"], buckets["octave"] = row, octave + dead.first_octave
    buckets["weights"] = weights[row, octave]
    text = json.dumps(
        {
            "boot_id": state.boot_id.hex(),
            "max_series": tables.series.limit,
            "series": [key[:4] for key in tables.series.keys if key is not None],
            "created_unix_ns": [tables.series.created_unix_ns[row] for row in rows],
            "users": [tables.series.users[row] for row in rows],
            "group_of": [key.group for key in tables.series.keys if key is not None],
            "groups": tables.series.groups,
            "ended_unix_ns": [tables.series.ended_unix_ns[row] for row in rows],
            "earliest_unix_ns": tables.series.earliest_unix_ns,
            "pairs": tables.measures.pairs(),
            "usage_keys": tables.usage.known(),
            "result_names": tables.results.known(),
            "health": dead.health[:_HEALTH_AT_FIRST],
            "usage": _items(dead.usage),
            "attach_results": _items(dead.attach_results),
            "measured": [[name, *pair, n] for (name, pair), n in dead.measured.items()],
            "folded_rows": dead.folded_rows,
            "refused": _items(state.refused),
            "bad": _items(state.bad),
            "taken": {path: sorted(names) for path, names in state.taken.items() if names},
            "counters": len(counters),
            "self": len(times_ns),
            "buckets": len(buckets),
            # Earlier states lack the following facts.
            "health_since": dead.health[_HEALTH_AT_FIRST:],
            "services": tables.services.known(),
            "name_users": {name: table.users() for name, table in _users_of(tables).items()},
            "overhead_ns": held.overhead_ns,
            "variances": [len(variances), len(held_variances)],
            "total": len(times_ns),
            "leaving": sorted(row_of[number] for number in tables.series.leaving),
            "targets": _items(tables.series.targets),
            "moved": {
                path: {name: one.facts(row_of) for name, one in files.items()}
                for path, files in state.moved.items()
            },
            "containers": [*tables.containers.facts()],
            # A pair for earlier agents, which held exported values of these too.
            "phase_variances": [_items_of(dead.phase_variances), []],
            "window_calls2": _windows_of(dead.phase_variances),
            **{
                fact: [
                    (service, ns) for (of, service), ns in held.processor_ns.items() if of == time
                ]
                for fact, time in _PROCESSOR_TIMES.items()
            },
        }
    ).encode()
    body = b"".join(
        (
            text,
            counters.astype("<u8").tobytes(),
            times_ns[:, 0].astype("<u8").tobytes(),
            buckets.tobytes(),
            variances.astype("<f8").tobytes(),
            held_variances.astype("<f8").tobytes(),
            times_ns[:, 1].astype("<u8").tobytes(),
        )
    )
    return _HEAD.pack(_MAGIC, _VERSION, zlib.crc32(body), len(body), len(text)) + body


def _users_of(tables: KeyTables) -> dict[str, BoundedNames | MeasureTable]:
    """The tables that record which user added each name."""
    return {
        "pairs": tables.measures,
        "usage": tables.usage,
        "results": tables.results,
        "services": tables.services,
    }


def _items(counts: Mapping[Any, int]) -> list[list[Any]]:
    """Counts keyed by words, as lists: the words, then the count."""
    return [[*key, count] for key, count in counts.items()]


def _items_of(phases: PhaseVariances) -> list[list[Any]]:
    return [[*key, one.calls, one.self_s2] for key, one in phases.items()]


def _windows_of(phases: PhaseVariances) -> list[list[Any]]:
    return [[*key, one.window_calls2] for key, one in phases.items() if one.window_calls2]


def decode(raw: bytes) -> State:
    """Raises StateError for anything but a complete state."""
    if len(raw) < _HEAD.size:
        raise StateError(f"it is truncated to {len(raw)} bytes")
    magic, version, checksum, size, text_size = _HEAD.unpack_from(raw)
    body = memoryview(raw)[_HEAD.size :]
    if magic != _MAGIC:
        raise StateError("it is not an agent's state")
    if version != _VERSION:
        raise StateError(f"its version is {version}, not {_VERSION}")
    if size != len(body) or zlib.crc32(body) != checksum:
        raise StateError("it is damaged")
    try:
        return _decode(json.loads(bytes(body[:text_size])), body[text_size:])
    # RecursionError, a RuntimeError: only a forged text nests this deeply.
    except RecursionError as error:
        raise StateError("it is nested too deeply") from error
    # Any exception that a malformed text can cause.
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise StateError(f"it is not in the form that an agent writes ({error})") from error


def _decode(facts: dict[str, Any], arrays: memoryview) -> State:
    tables = KeyTables(_count(facts["max_series"]))
    series = tables.series
    created = [_count(one) for one in facts["created_unix_ns"]]
    # An earlier agent's state lacks the series' users and the times when their processes ended.
    users = [_count(one) for one in facts.get("users", [0] * len(created))]
    groups = [_text(one) for one in facts.get("group_of", [""] * len(created))]
    series.groups = {
        _text(name): _pairs(of_one) for name, of_one in facts.get("groups", {}).items()
    }
    for (service, op, phase, labels), since, user, group in zip(
        facts["series"], created, users, groups, strict=True
    ):
        words = _text(service), _text(op), _text(phase)
        series.add(SeriesKey(*words, _pairs(labels), None, group), since, user)
    ended = [_count(one) for one in facts.get("ended_unix_ns", [0] * len(created))]
    if len(ended) != len(created):
        raise ValueError("ended_unix_ns")
    series.ended_unix_ns = ended
    series.earliest_unix_ns = _count(facts["earliest_unix_ns"])
    series.targets = {
        Owner(_count(user), _text(service)): _count(count)
        for user, service, count in facts.get("targets", ())
    }
    series.leaving = {_count(one) for one in facts.get("leaving", ())}
    if max(series.leaving, default=-1) >= len(created):
        raise ValueError("leaving")
    pairs = ((_text(a), _text(b)) for a, b in facts["pairs"])
    by = {name: [*map(_user, users)] for name, users in facts.get("name_users", {}).items()}
    tables.measures = MeasureTable(pairs, tables.limited, by.get("pairs", ()))
    tables.usage.take(map(_text, facts["usage_keys"]), by.get("usage", ()))
    tables.results.take(map(_text, facts["result_names"]), by.get("results", ()))
    tables.services.take(map(_text, facts.get("services", ())), by.get("services", ()))
    tables.containers.take(
        (_count(uid), _count(namespace), _count(pid), _count(start), _text(one), _text(pod))
        for uid, namespace, pid, start, one, pod in facts.get("containers", ())
    )

    rows, held, octaves = (_count(facts[name]) for name in ("counters", "self", "buckets"))
    off_rows, off_held = map(_count, facts.get("variances", (0, 0)))
    totals = _count(facts.get("total", 0))
    row_bytes = 8 * variance.COLUMNS
    sizes = (
        rows * COUNTER_COLUMNS * 8,
        held * 8,
        octaves * _BUCKET.itemsize,
        off_rows * row_bytes,
        off_held * row_bytes,
        totals * 8,
    )
    if max(rows, held, off_held) > len(series.keys) or off_rows > rows or totals > held:
        raise ValueError("rows")
    # A later agent of the same version may have appended arrays and facts.
    if sum(sizes) > len(arrays):
        raise ValueError("sizes")
    parts = [arrays[end - size : end] for size, end in zip(sizes, np.cumsum(sizes), strict=True)]
    counters = np.frombuffer(parts[0], "<u8").reshape(rows, COUNTER_COLUMNS)
    times_ns = np.zeros((held, 2), np.uint64)
    times_ns[:, 0] = np.frombuffer(parts[1], "<u8")
    times_ns[:totals, 1] = np.frombuffer(parts[5], "<u8")
    dense, first_octave = _dense(np.frombuffer(parts[2], _BUCKET), rows)
    phases = _phase_variances(
        facts.get("phase_variances", ((), ()))[0], facts.get("window_calls2", ())
    )
    dead = Sums(
        counters.astype(np.uint64),
        dense,
        first_octave,
        Health(*(_count(one) for one in (*facts["health"], *facts.get("health_since", ())))),
        _counter(facts["usage"], 2),
        _counter(facts["attach_results"], 2),
        Counter(
            {(_text(name), (_text(a), _text(b))): _count(n) for name, a, b, n in facts["measured"]}
        ),
        _count(facts["folded_rows"]),
        variance.rows_of(rows, _variances(parts[3])),
        phases,
        Parts.without_owed(np.zeros((0, variance.COLUMNS))),
    )
    return State(
        boot_id=bytes.fromhex(facts["boot_id"]),
        tables=tables,
        dead=dead,
        held=Held(
            times_ns,
            _variances(parts[4]),
            _count(facts.get("overhead_ns", 0)),
            {
                (time, _text(service)): _count(ns)
                for fact, time in _PROCESSOR_TIMES.items()
                for service, ns in facts.get(fact, ())
            },
        ),
        refused=_counter(facts["refused"], 2),
        bad=_counter(facts["bad"], 1),
        taken={path: set(map(_name, names)) for path, names in facts["taken"].items()},
        moved={
            path: {_name(name): from_facts(one, len(series.keys)) for name, one in files.items()}
            for path, files in facts.get("moved", {}).items()
        },
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


def _variances(raw: memoryview) -> F64:
    found = np.frombuffer(raw, "<f8").reshape(-1, variance.COLUMNS).astype(np.float64)
    if not (np.isfinite(found) & (found >= 0)).all():
        raise ValueError("variances")
    return found


def _phase_variances(items: Iterable[list[Any]], windows: Iterable[list[Any]]) -> PhaseVariances:
    window_calls2 = {(service, phase): value for service, phase, value in windows}
    found: PhaseVariances = {}
    for service, phase, calls, self_s2 in items:
        values = calls, self_s2, window_calls2.get((service, phase), 0.0)
        one = PhaseVariance(*map(float, values))
        if not all(0 <= value < math.inf for value in one):
            raise ValueError("variances")
        found[_text(service), _text(phase)] = one
    return found


def _counter(items: Iterable[list[Any]], words: int) -> Counter[Any]:
    found: Counter[Any] = Counter()
    for *key, count in items:
        if len(key) != words:
            raise ValueError("words")
        found[tuple(map(_text, key))] = _count(count)
    return found


def _pairs(items: Iterable[list[Any]]) -> Labels:
    return tuple((_text(name), _text(value)) for name, value in items)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def _name(value: object) -> str:
    name = _text(value)
    if "/" in name or "\0" in name:
        raise ValueError(f"{name!r} is not a file name")
    return name


def _user(value: object) -> int:
    return NOBODY if value == NOBODY else _count(value)


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 63:
        raise TypeError(f"{value!r} is not a count")
    return value
