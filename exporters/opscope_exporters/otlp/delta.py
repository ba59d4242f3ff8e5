"""The base of delta exports: the counts that were sent last.

A file keeps them over the agent's restarts, like the sums that they belong to (host/state.py). A
series is the same as before only if its start time is the same. A series that began after the last
export is sent whole. For an unknown series that began earlier, it is unclear which part was sent:
its increase is left out once, because start times reveal a total that is too small, but not one
that is too large. Series made by retirement contain only values that were sent before.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from opscope.host.snapshot import COUNTER_COLUMNS, SELF_UNKNOWN, SeriesKey, Snapshot
from opscope.replace_file import remove_remains, replace_file
from opscope.segments import layout, variance
from opscope.segments.layout import U64
from opscope.segments.variance import F64

HostCounts = Mapping[tuple[str, ...], float]
"""Counters without series: by metric, then the values of its labels."""


class Base(NamedTuple):
    """All counts sent up to a time."""

    time_unix_ns: int
    keys: tuple[SeriesKey, ...]
    created_unix_ns: NDArray[np.int64]
    counters: U64
    buckets: U64
    first_octave: int
    host: HostCounts
    variances: F64


def base_of(snapshot: Snapshot, host: HostCounts) -> Base:
    return Base(
        snapshot.time_unix_ns,
        snapshot.keys,
        snapshot.created_unix_ns,
        snapshot.counters,
        snapshot.buckets,
        snapshot.first_octave,
        dict(host),
        snapshot.variances,
    )


def since(snapshot: Snapshot, base: Base) -> tuple[Snapshot, NDArray[np.int64]]:
    """The snapshot minus the counts sent; for each series, the start time of the remainder.

    Bucket counts are differences of rounded counts, so that they add up to whole calls.
    """
    sent = np.zeros_like(snapshot.counters)
    sent_variances = np.zeros_like(snapshot.variances)
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
        sent_variances[now] = base.variances[then]
        sent_variances[unknown] = snapshot.variances[unknown]
        sent_buckets[unknown] = buckets[unknown]
        shift = base.first_octave - snapshot.first_octave
        for octave in range(base.buckets.shape[1]):
            if 0 <= octave + shift < buckets.shape[1]:
                sent_buckets[now, octave + shift] = _rounded(base.buckets[then, octave])
    retired = [row for row, key in enumerate(snapshot.keys) if key.is_retired]
    starts[retired] = base.time_unix_ns
    sent[retired], sent_buckets[retired] = snapshot.counters[retired], buckets[retired]
    # Whether a self time is known is a flag, not a count.
    sent[:, SELF_UNKNOWN] = 0
    left = replace(
        snapshot,
        counters=snapshot.counters - np.minimum(snapshot.counters, sent),
        buckets=buckets - np.minimum(buckets, sent_buckets),
        variances=np.maximum(snapshot.variances - sent_variances, 0),
        variance_parts=None,
    )
    return left, starts


def _rounded(weights: U64) -> U64:
    """Rounded to even, as data.py rounds without a base."""
    rounded: U64 = np.rint(weights / layout.WEIGHT_ONE).astype(np.uint64)
    return rounded * np.uint64(layout.WEIGHT_ONE)


def save(base: Base, path: str) -> None:
    """Replaces the file atomically. Raises OSError."""
    facts = {
        "time_unix_ns": base.time_unix_ns,
        "first_octave": base.first_octave,
        "keys": [[*key[:4], key.group] for key in base.keys],
        "host": [[list(key), value] for key, value in base.host.items()],
    }
    raw = io.BytesIO()
    np.savez(
        raw,
        facts=np.frombuffer(json.dumps(facts).encode(), np.uint8),
        created_unix_ns=base.created_unix_ns,
        counters=base.counters,
        buckets=base.buckets,
        variances=base.variances,
    )
    replace_file(path, raw.getbuffer(), mode=0o600)


def load(path: str) -> Base | None:
    """The saved base; None if the file is missing or unreadable."""
    remove_remains(path)
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
                        # Files of earlier agents lack the group.
                        SeriesKey(
                            service, op, phase, tuple((a, b) for a, b in labels), None, *group
                        )
                        for service, op, phase, labels, *group in facts["keys"]
                    ),
                    arrays["created_unix_ns"].astype(np.int64),
                    arrays["counters"].astype(np.uint64),
                    arrays["buckets"].astype(np.uint64),
                    facts["first_octave"],
                    {tuple(key): float(value) for key, value in facts["host"]},
                    _variances_in(arrays),
                )
    except (OSError, ValueError, LookupError, TypeError, EOFError, zipfile.BadZipFile):
        return None
    n = len(base.keys)
    is_whole = (
        base.created_unix_ns.shape == (n,)
        and base.counters.shape == (n, COUNTER_COLUMNS)
        and len(base.variances) == n
        and base.buckets.ndim == 3
        and base.buckets.shape[::2] == (n, layout.BUCKETS_PER_OCTAVE)
    )
    return base if is_whole else None


def _variances_in(arrays: Mapping[str, NDArray[Any]]) -> F64:
    """Zeros if an older file has none: no variance was sent then."""
    if "variances" not in arrays:
        return variance.rows_of(len(arrays["created_unix_ns"]), np.zeros((0, variance.COLUMNS)))
    found = arrays["variances"].astype(np.float64)
    if found.ndim != 2 or found.shape[1] != variance.COLUMNS or not np.isfinite(found).all():
        raise ValueError("variances")
    return found
