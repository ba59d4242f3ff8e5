"""The recorder's status. A separate module, since starting the recorder does not need it."""

from typing import NamedTuple


class RecorderStatus(NamedTuple):
    """The status of this process's recorder."""

    running: bool
    in_window: bool
    dropped_count: int
    """Ranges that found no room and are in no table."""
    folded_count: int
    """Ranges counted under the operator "other" for lack of room."""
    window_count: int
    record_cost_s: float
    """Cost of one recorded range in seconds, measured when the recorder started."""
    path: str
    """Path of the segment; empty if no recorder runs."""
