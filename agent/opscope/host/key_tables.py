"""The keys of a host's numbers: series, pairs of process metrics, usage keys, attach results.

Each table is bounded, so no process can fill the agent's memory or pages. Entries stay, since a
counter that moved to `other` and back would decrease; the exception is the retired series of ended
processes (retirement.py). The state keeps the tables over restarts with the sums that they name
(host/state.py).
"""

from __future__ import annotations

from opscope.attachment import ledger
from opscope.host.amounts import Amounts
from opscope.host.bounded_names import BoundedNames
from opscope.host.budgets import LimitedPasses
from opscope.host.containers import Containers
from opscope.host.kept_back import KeptBack
from opscope.host.process_metrics import MeasureTable
from opscope.host.series_table import SeriesTable
from opscope.host.usual_waiting import UsualWaiting

# One user gets at most half of each.
_USAGE_LIMIT = 2000
_SERVICE_LIMIT = 2000
# Room for names of bridges, and for ledger codes of later versions.
_RESULT_LIMIT = 128


class KeyTables:
    def __init__(self, max_series: int) -> None:
        self.left: list[Amounts] = []
        """What rows of live processes counted under series that they have left; the host adds it
        to the sums of ended processes."""
        self.kept_back = KeptBack()
        self.moves = 0
        """Times that rows came under `other` or left a series."""
        self.ranks = False
        """Give each rank of a job its own series."""
        self.by_container = False
        """Give each container its own series."""
        self.containers = Containers()
        self.limited = LimitedPasses()
        """Users that got less than they asked for."""
        self.series = SeriesTable(max_series, self.limited)
        self.measures = MeasureTable(limited=self.limited)
        self.usage = BoundedNames(_USAGE_LIMIT, limited=self.limited)
        self.services = BoundedNames(_SERVICE_LIMIT, limited=self.limited)
        """Services with sums by phase."""
        self.usual_waiting = UsualWaiting()
        self.results = BoundedNames(_RESULT_LIMIT, ("process", *ledger.CODES), self.limited)

    def usage_of(self, api: str, service: str, user: int = 0) -> tuple[str, str]:
        """The API and the service that used it, or `other` for both."""
        api, _, service = self.usage.bounded(f"{api}\0{service}", user).partition("\0")
        return api, service or api

    @property
    def size(self) -> int:
        """The number of entries that all tables got; it only grows."""
        return (
            len(self.series)
            + self.containers.changes
            + len(self.measures)
            + sum(map(len, (self.usage, self.services, self.results)))
        )
