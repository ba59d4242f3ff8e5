"""The loop of `opscope agent`: passes and sweeps without a request.

Each second it makes a sweep, which costs almost nothing unless processes have started or ended. It
makes a whole pass if no client has requested one for a while, so that contents of vanishing files
are not lost, and /readyz stays correct without scrapes. An error in either is reported once and
retried: an agent that exits reports on no process.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable

from opscope.server.pages import Latest

_SWEEP_S = 1.0


class Stop:
    """A stop request, which a signal handler may make while it interrupts the waiting thread.

    The request is a kernel object. `threading.Event` does not allow such a call, as the interrupted
    code may hold its lock. `SimpleQueue` allows it, but its `get` waits for ever when the timeout
    passes before the wait begins (CPython 3.11).
    """

    def __init__(self) -> None:
        self._fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLIN)

    def __del__(self) -> None:
        os.close(self._fd)

    def ask(self) -> None:
        os.eventfd_write(self._fd, 1)

    def wait(self, seconds: float) -> bool:
        """Waits for a stop request, up to that many seconds; whether there was one."""
        return bool(self._poll.poll(1000 * seconds))


def run(
    latest: Latest,
    sweep: Callable[[], object],
    interval_s: float,
    stop: Stop,
    say: Callable[[str], None],
) -> None:
    """Runs until `stop` is asked for. Calls `say` with each new error."""
    last_error = ""
    is_stopped = False
    while not is_stopped:
        error = _run_once(latest, sweep, interval_s)
        if error != last_error:
            say(error or "passes succeed again")
            last_error = error
        is_stopped = stop.wait(min(_SWEEP_S, interval_s))


def _run_once(latest: Latest, sweep: Callable[[], object], interval_s: float) -> str:
    age_s = latest.age_s
    try:
        if age_s is None or age_s >= interval_s:
            latest.snapshot()
        else:
            latest.between(sweep)
    except Exception as error:
        return f"a pass failed and will be retried: {type(error).__name__}: {error}"
    return ""
