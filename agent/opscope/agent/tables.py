"""What tells one number of this host from another: series, pairs of measures, keys, results.

Each table is bounded, so that no process can fill the agent's memory or its pages, and what is once
in it stays: a counter that moved to `other` and back would step back. The tables are kept over the
agent's restarts with the sums that they name (agent/state.py).
"""

from __future__ import annotations

from opscope.agent.measures import MeasureTable
from opscope.agent.names import Names
from opscope.agent.snapshot import OTHER, SeriesKey
from opscope.attachment import ledger

_USAGE_LIMIT = 1000
# Names of bridges, and codes of the ledger that a later version may have.
_RESULT_LIMIT = 64


class SeriesTable:
    """The host's series, each with its number; at most `limit`, and then one for all others."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._numbers: dict[SeriesKey, int] = {}
        self.keys: list[SeriesKey] = []
        self.created_unix_ns: list[int] = []
        self.earliest_unix_ns = 0
        """No series began to count before."""

    def number(self, key: SeriesKey, created_unix_ns: int) -> int:
        """The series of that key; a series once there stays, or counters would step back."""
        if key not in self._numbers and len(self.keys) >= self.limit:
            key = OTHER
        found = self._numbers.get(key)
        return self.add(key, created_unix_ns) if found is None else found

    def add(self, key: SeriesKey, created_unix_ns: int) -> int:
        """A series that is not there yet, beyond the limit too."""
        number = self._numbers[key] = len(self.keys)
        self.keys.append(key)
        self.created_unix_ns.append(max(created_unix_ns, self.earliest_unix_ns))
        return number

    @property
    def other(self) -> int | None:
        return self._numbers.get(OTHER)


class Tables:
    def __init__(self, max_series: int) -> None:
        self.series = SeriesTable(max_series)
        self.measures = MeasureTable()
        self.usage = Names(_USAGE_LIMIT)
        self.results = Names(_RESULT_LIMIT, ("process", *ledger.CODES))

    def usage_of(self, api: str, service: str) -> tuple[str, str]:
        """The API and who used it, or `other` for both."""
        api, _, service = self.usage.bounded(f"{api}\0{service}").partition("\0")
        return api, service or api

    @property
    def size(self) -> int:
        """Grows with whatever is taken in."""
        return len(self.series.keys) + len(self.measures) + len(self.usage) + len(self.results)
