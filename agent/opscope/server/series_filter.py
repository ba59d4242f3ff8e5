"""Filter the exported series: drop operators that match globs, then keep the top operators.

Dropped series are exported nowhere. Operators below the top are summed up (top_operators.py). The
filter applies to exports only: the live page and `opscope top` show every operator.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fnmatch import translate
from functools import lru_cache

from opscope.config import Config
from opscope.host.snapshot import SeriesKey, Snapshot
from opscope.server.exporter import PageExporter
from opscope.server.top_operators import TopOperators

_NAMES_KEPT = 16384
_LATE_NS = 60 * 10**9


class SeriesFilter:
    """Applied to each snapshot before export. Thread-safe."""

    def __init__(
        self,
        drop_ops: Sequence[str] = (),
        drop_services: Sequence[str] = (),
        top_ops: int = 0,
        *,
        from_now: bool = False,
    ) -> None:
        """`drop_ops`, `drop_services`: globs; `top_ops` 0: all; `from_now` as for TopOperators."""
        self._drops_op, self._drops_service = _matches(drop_ops), _matches(drop_services)
        self._drops = bool(drop_ops or drop_services)
        self._top = TopOperators(top_ops, from_now=from_now) if top_ops else None
        self._lock = threading.Lock()
        self._given_ns = 0
        self._made: Snapshot | None = None

    @classmethod
    def of(cls, settings: Config, *, from_now: bool = False) -> SeriesFilter:
        return cls(settings.drop_ops, settings.drop_services, settings.top_ops, from_now=from_now)

    def apply(self, snapshot: Snapshot) -> Snapshot:
        """The filtered snapshot; if a newer one was filtered before, the result of that."""
        if not self._drops and self._top is None:
            return snapshot
        with self._lock:
            if self._made is None or not self._is_late(snapshot):
                self._given_ns, self._made = snapshot.time_unix_ns, self._filtered(snapshot)
            return self._made

    def _is_late(self, snapshot: Snapshot) -> bool:
        """Whether another thread has already filtered this snapshot or a newer one. A much older
        snapshot is not late: the clock was set back."""
        return 0 <= self._given_ns - snapshot.time_unix_ns < _LATE_NS

    def _filtered(self, snapshot: Snapshot) -> Snapshot:
        filtered: dict[tuple[str], int] = {}
        if self._drops:
            count = len(snapshot.keys)
            snapshot = self._without_dropped(snapshot)
            filtered["drop",] = count - len(snapshot.keys)
        if self._top is not None:
            snapshot, filtered["top",] = self._top.apply(snapshot)
        return replace(snapshot, series_filtered=filtered)

    def _without_dropped(self, snapshot: Snapshot) -> Snapshot:
        rows = [row for row, key in enumerate(snapshot.keys) if not self._is_dropped(key)]
        exemplars = snapshot.exemplars
        return replace(
            snapshot,
            keys=tuple(snapshot.keys[row] for row in rows),
            created_unix_ns=snapshot.created_unix_ns[rows],
            counters=snapshot.counters[rows],
            buckets=snapshot.buckets[rows],
            variances=snapshot.variances[rows],
            variance_parts=None,
            exemplars={new: exemplars[row] for new, row in enumerate(rows) if row in exemplars},
        )

    def _is_dropped(self, key: SeriesKey) -> bool:
        return self._drops_op(key.op) or self._drops_service(key.service)


def _matches(globs: Sequence[str]) -> Callable[[str], bool]:
    """A test whether a name matches one of the globs, with a cache of its answers."""
    if not globs:
        return lambda name: False
    pattern = re.compile("|".join(map(translate, globs)))
    return lru_cache(_NAMES_KEPT)(lambda name: pattern.match(name) is not None)


class FilteredPage:
    """A PageExporter that gets filtered snapshots."""

    def __init__(self, page: PageExporter, series: SeriesFilter) -> None:
        self._page, self._series = page, series

    def page(self, snapshot: Snapshot, accept: str) -> tuple[Iterable[bytes], str]:
        return self._page.page(self._series.apply(snapshot), accept)

    def close(self) -> None:
        self._page.close()
