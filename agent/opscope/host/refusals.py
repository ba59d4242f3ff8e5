"""Why processes were not attached to: the entries of the ledger, counted each once.

An entry is counted while it is there, and among those taken in once it is gone or says something
else. It goes when its process has: found by pid and start time, so one of a process in another pid
namespace seems dead. The newest of those that are not found stay for an hour, for `opscope ps` over
there to tell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress

from opscope.agent import liveness
from opscope.agent.liveness import Here
from opscope.agent.names import Names
from opscope.attachment.ledger import LedgerEntry

_KEPT, _KEPT_S = 200, 3600.0


class Reasons:
    def __init__(self, names: Names) -> None:
        self._names = names
        self._present: dict[str, str] = {}

    @property
    def counts(self) -> Counter[tuple[str, str]]:
        """Of the entries that are there."""
        return Counter(("process", code) for code in self._present.values())

    def take(self, entries: Sequence[LedgerEntry], taken: Collection[str]) -> list[str]:
        """Takes what is there now for present, but for those of the paths that were taken in
        before; gives the codes of entries that are there no more."""
        now = {
            entry.path: self._names.bounded(entry.code)
            for entry in entries
            if entry.path not in taken
        }
        gone = [code for path, code in self._present.items() if now.get(path) != code]
        self._present = now
        return gone

    def finish(self, path: str) -> str | None:
        """The code of an entry that is about to be removed; from now on it is not present."""
        return self._present.pop(path, None)


def over(entries: Sequence[LedgerEntry], where: Here, now_s: float) -> list[LedgerEntry]:
    """The entries that are to go."""
    not_found = []
    for entry in entries:
        with suppress(OSError):
            if liveness.is_dead(*where, entry.pid, entry.process_start, where):
                not_found.append(entry)
    not_found.sort(key=lambda entry: entry.utc_seconds)
    kept = {entry.path for entry in not_found[-_KEPT:] if 0 <= now_s - entry.utc_seconds < _KEPT_S}
    return [entry for entry in not_found if entry.path not in kept]
