"""What a receiver of deltas was told last: the counts that the next export is the difference to.

Kept in a file over the agent's restarts, as the sums are that it belongs to (agent/state.py). A
series is taken for the same only with the same start time. What began anew after the last export is
all new; of what began before it and is not known by its start, nobody can say which part was sent:
that is left out once, as a receiver's total that is too small can be told from its start times, and
one that is too large cannot.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from opscope.agent import layout
from opscope.agent.layout import U64
from opscope.agent.snapshot import COUNTER_COLUMNS, SELF_UNKNOWN, SeriesKey, Snapshot

HostCounts = Mapping[tuple[str, ...], float]
"""Counters that are of no series: by metric, then the values of its labels."""


class Base(NamedTuple):
    """Everything that was sent up to a time."""

    time_unix_ns: int
    keys: tuple[SeriesKey, ...]
    created_unix_ns: NDArray[np.int64]
    counters: U64
    buckets: U64
    first_octave: int
    host: HostCounts


def base_of(snapshot: Snapshot, host: HostCounts) -> Base:
    return Base(
        snapshot.time_unix_ns,
        snapshot.keys,
        snapshot.created_unix_ns,
        snapshot.counters,
        snapshot.buckets,
        snapshot.first_octave,
        dict(host),
    )


def since(snapshot: Snapshot, base: Base) -> tuple[Snapshot, NDArray[np.int64]]:
    """The snapshot less what was sent; for each series, since when what is left was counted.

    Of buckets, whole calls are left: the differences of rounded counts, so that they add up.
    """
    sent = np.zeros_like(snapshot.counters)
    buckets = _rounded(snapshot.buckets)
    sent_buckets = np.zeros_like(buckets)
    starts = snapshot.created_unix_ns.copy()
    rows = {key: row for row, key in enumerate(base.keys)}
    pairs = [(row, rows[key]) for row, key in enumerate(snapshot.keys) if key in rows]
    if pairs:
        now, then = np.array(pairs, np.intp).T
        is_same = starts[now] == base.created_unix_ns[then]
        unknown = now[~is_same & (starts[now] < base.time_unix_ns)]
        now, then = now[is_same], then[is_same]
        starts[now], starts[unknown] = base.time_unix_ns, snapshot.time_unix_ns
        sent[now], sent[unknown] = base.counters[then], snapshot.counters[unknown]
        sent_buckets[unknown] = buckets[unknown]
        shift = base.first_octave - snapshot.first_octave
        for octave in range(base.buckets.shape[1]):
            if 0 <= octave + shift < buckets.shape[1]:
                sent_buckets[now, octave + shift] = _rounded(base.buckets[then, octave])
    # Whether a self time is known is no count.
    sent[:, SELF_UNKNOWN] = 0
    left = replace(
        snapshot,
        counters=snapshot.counters - np.minimum(snapshot.counters, sent),
        buckets=buckets - np.minimum(buckets, sent_buckets),
    )
    return left, starts


def _rounded(weights: U64) -> U64:
    """As otlp_data.py rounds what is told without a base, halves to the even number."""
    rounded: U64 = np.rint(weights / layout.WEIGHT_ONE).astype(np.uint64)
    return rounded * np.uint64(layout.WEIGHT_ONE)


def save(base: Base, path: str) -> None:
    """Replaces the file whole. Raises OSError."""
    facts = {
        "time_unix_ns": base.time_unix_ns,
        "first_octave": base.first_octave,
        "keys": [[*key[:4]] for key in base.keys],
        "host": [[list(key), value] for key, value in base.host.items()],
    }
    raw = io.BytesIO()
    np.savez(
        raw,
        facts=np.frombuffer(json.dumps(facts).encode(), np.uint8),
        created_unix_ns=base.created_unix_ns,
        counters=base.counters,
        buckets=base.buckets,
    )
    new = f"{path}.new"
    with suppress(FileNotFoundError):
        os.unlink(new)
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(raw.getbuffer())
    os.replace(new, path)


def load(path: str) -> Base | None:
    """What was saved; None where there is nothing, or nothing that can be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as file:
            if os.fstat(fd).st_uid != os.geteuid():
                return None
            with np.load(file, allow_pickle=False) as arrays:
                facts = json.loads(arrays["facts"].tobytes())
                base = Base(
                    facts["time_unix_ns"],
                    tuple(
                        SeriesKey(service, op, phase, tuple((a, b) for a, b in labels))
                        for service, op, phase, labels in facts["keys"]
                    ),
                    arrays["created_unix_ns"].astype(np.int64),
                    arrays["counters"].astype(np.uint64),
                    arrays["buckets"].astype(np.uint64),
                    facts["first_octave"],
                    {tuple(key): float(value) for key, value in facts["host"]},
                )
    except (OSError, ValueError, LookupError, TypeError, EOFError, zipfile.BadZipFile):
        return None
    n = len(base.keys)
    is_whole = (
        base.created_unix_ns.shape == (n,)
        and base.counters.shape == (n, COUNTER_COLUMNS)
        and base.buckets.ndim == 3
        and base.buckets.shape[::2] == (n, layout.BUCKETS_PER_OCTAVE)
    )
    return base if is_whole else None
