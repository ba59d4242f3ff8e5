"""What the recorder says of itself. A module of its own, as starting it has no use for it."""

from typing import NamedTuple


class RecorderStatus(NamedTuple):
    """How this process's recorder stands."""

    running: bool
    in_window: bool
    dropped_count: int
    """Ranges that found no room and are in no table."""
    folded_count: int
    """Ranges counted under the operator "other" for want of room."""
    window_count: int
    record_cost_s: float
    """What one recorded range costs, measured when the recorder started; seconds."""
    path: str
    """Of the segment; empty where no recorder runs."""
