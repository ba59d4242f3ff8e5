"""How long the processes of a service usually wait for a processor.

A short process ends before a pass has read the kernel's count of its times, or with the last
reading long past. What the agent has read of others of its service, and of the same user, tells how
long they wait in how much time on a processor. It comes from the kernel alone: what a process
states of itself has no part in it.
"""

from __future__ import annotations

from opscope.host.processor_time import ProcessorTime

_LIMIT = 4096
# Of CPU time: a service's waiting of now counts for more than that of long ago.
_HORIZON_NS = 100 * 10**9

UserService = tuple[int, str]


class UsualWaiting:
    def __init__(self) -> None:
        self._of: dict[UserService, ProcessorTime] = {}

    def note(self, key: UserService, more: ProcessorTime) -> None:
        """Takes what one of its processes has used and waited since its last reading."""
        if more.used <= 0:
            return
        before = self._of.pop(key, ProcessorTime())
        share = min(1.0, _HORIZON_NS / before.used) if before.used else 0.0
        self._of[key] = ProcessorTime(
            more.used + round(share * before.used), more.waited + round(share * before.waited)
        )
        if len(self._of) > _LIMIT:
            del self._of[next(iter(self._of))]

    def of(self, key: UserService) -> ProcessorTime:
        """Time on a processor, and the time waited for it in that time; zeros if unknown."""
        return self._of.get(key, ProcessorTime())
