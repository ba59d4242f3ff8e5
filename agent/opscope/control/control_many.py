"""Change the control blocks of many processes, with one outcome for each.

The processes are independent: one that holds its lock, or has a damaged file, does not delay the
others. All locks share one deadline.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from opscope.control import control_block
from opscope.control.control_block import Answer, BusyError, FoundProcess, Segment
from opscope.record.settings_change import SettingsChange

LOCK_WAIT_S = 1.0
_STEP_S = 0.01


class Outcome(NamedTuple):
    """The result of a change in one process."""

    found: FoundProcess
    done: bool
    text: str


def change_all(
    processes: Sequence[FoundProcess],
    change: Callable[[int, Segment], Any],
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> list[str]:
    """Calls `change` with the index and the open block of each process.

    Returns for each process the error text, "" on success. Retries a process whose block another
    controller holds, for LOCK_WAIT_S in total.
    """
    failures = [""] * len(processes)
    left = list(range(len(processes)))
    deadline = clock() + LOCK_WAIT_S
    while left:
        held = []
        for index in left:
            try:
                _changed(processes[index], index, change)
                failures[index] = ""
            except BusyError as error:
                failures[index] = said(processes[index], error)
                held.append(index)
            except Exception as error:
                failures[index] = said(processes[index], error)
        left = held
        if clock() > deadline:
            break
        if left:
            sleep(_STEP_S)
    return failures


def _changed(found: FoundProcess, index: int, change: Callable[[int, Segment], Any]) -> None:
    with control_block.opened(found) as segment:
        change(index, segment)


def set_all(
    processes: Sequence[FoundProcess], change: SettingsChange, wait_s: float
) -> list[Outcome]:
    """Sets all of them, and waits up to `wait_s` seconds for all answers."""
    failures = change_all(processes, lambda _, segment: segment.set(change))
    outcomes: dict[str, Outcome] = {
        found.path: Outcome(found, False, why)
        for found, why in zip(processes, failures, strict=True)
        if why
    }
    deadline = time.monotonic() + wait_s
    while True:
        for found in processes:
            if found.path not in outcomes:
                outcome = _ask(found)
                if outcome is not None:
                    outcomes[found.path] = outcome
        if len(outcomes) == len(processes) or time.monotonic() > deadline:
            break
        time.sleep(_STEP_S)
    pending = Answer(1, 0, 0, 0).text()
    return [outcomes.get(found.path, Outcome(found, False, pending)) for found in processes]


def _ask(found: FoundProcess) -> Outcome | None:
    """The answer of one process; None until it has answered."""
    try:
        with control_block.opened(found) as segment:
            answer = segment.answer()
    except Exception as error:
        return Outcome(found, False, said(found, error))
    return None if answer.is_pending else Outcome(found, not answer.is_refused, answer.text())


def said(found: FoundProcess, error: Exception) -> str:
    """The error in one process, without its pid."""
    text = str(error).removeprefix(f"pid {found.pid}: ")
    return (
        text
        if isinstance(error, control_block.EXPECTED)
        else f"{control_block.UNFORESEEN}: {error!r}"
    )
