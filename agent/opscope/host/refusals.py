"""Reasons why processes were not attached: ledger entries, each counted once.

An entry counts while its file exists, and moves to the finished ones when the file is removed or
changes. The file is removed after its process has ended; the agent finds processes by pid and start
time, so one in another pid namespace looks ended. The newest such entries stay for an hour, so that
`opscope ps` in that namespace can show them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress

from opscope.attachment.ledger import LedgerEntry
from opscope.host.bounded_names import BoundedNames
from opscope.segments import liveness
from opscope.segments.liveness import Here

_KEPT, _KEPT_S = 200, 3600.0


class Refusals:
    def __init__(self, names: BoundedNames) -> None:
        self._names = names
        self._present: dict[str, str] = {}

    @property
    def present(self) -> Collection[str]:
        """The paths of the existing entries."""
        return self._present

    @property
    def counts(self) -> Counter[tuple[str, str]]:
        """The number of existing entries, by result."""
        return Counter(("process", code) for code in self._present.values())

    def take(self, entries: Sequence[LedgerEntry], taken: Collection[str]) -> list[str]:
        """Makes `entries` the existing ones, except those at the paths `taken`, which were finished
        before; returns the codes of entries that have disappeared or changed."""
        now = {
            entry.path: self._names.bounded(entry.code)
            for entry in entries
            if entry.path not in taken
        }
        gone = [code for path, code in self._present.items() if now.get(path) != code]
        self._present = now
        return gone

    def finish(self, path: str) -> str | None:
        """Finishes an entry whose file is about to be removed; returns its code."""
        return self._present.pop(path, None)


def over(entries: Sequence[LedgerEntry], where: Here, now_s: float) -> list[LedgerEntry]:
    """The entries whose files are due for removal."""
    not_found = []
    for entry in entries:
        with suppress(OSError):
            if liveness.is_dead(*where, entry.pid, entry.process_start, where):
                not_found.append(entry)
    not_found.sort(key=lambda entry: entry.utc_seconds)
    kept = {entry.path for entry in not_found[-_KEPT:] if 0 <= now_s - entry.utc_seconds < _KEPT_S}
    return [entry for entry in not_found if entry.path not in kept]
