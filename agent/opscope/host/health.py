"""What the recorders of observed processes say of themselves."""

from __future__ import annotations

from typing import NamedTuple

from opscope.segments import bounds


class Health(NamedTuple):
    """The recorders' self-reported health, summed over live and ended processes."""

    samples: int = 0
    dropped: int = 0
    folded: int = 0
    callback_errors: int = 0
    overhead_ns: int = 0
    """Samples times the cost of one sample, as measured in each process."""
    adaptations: int = 0
    """Times that a recorder changed its sampling to stay within its overhead budget."""
    discarded: int = 0
    """Segments of ended processes that other processes removed unread to make room."""

    @property
    def overhead_s(self) -> float:
        return self.overhead_ns / 1e9

    def plus(self, other: Health) -> Health:
        return Health(*(bounds.saturated(a + b) for a, b in zip(self, other, strict=True)))
