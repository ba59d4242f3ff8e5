"""Which steps of a program a profile records; names and meaning are those of torch.profiler."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum


class ProfilerAction(Enum):
    """What a profile does in one step."""

    NONE = 0
    WARMUP = 1
    """Nothing yet: the calibration is repeated at each start of a recording, so that nothing is
    left to warm up. It is an action of its own for schedules written for PyTorch."""
    RECORD = 2
    RECORD_AND_SAVE = 3
    """The last step of a recording."""

    @property
    def records(self) -> bool:
        return self in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0
) -> Callable[[int], ProfilerAction]:
    """A function of the step's number (from 0) for `opscope.profile(schedule=...)`.

    After `skip_first` steps, cycles of `wait` steps without recording, `warmup` steps (without
    recording too) and `active` recorded ones; `repeat` cycles, 0: without end. ValueError for a
    negative number, or no active step.
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active < 1:
        raise ValueError(
            "schedule: wait, warmup, repeat and skip_first must be 0 or more, active 1 or more"
        )
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        at = step - skip_first
        if at < 0 or (repeat and at >= repeat * length):
            return ProfilerAction.NONE
        at %= length
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if at == length - 1 else ProfilerAction.RECORD

    return action
