"""When the agent looks at segments without being asked: the loop of `opscope agent`.

A sweep each second, which costs next to nothing where no process has come or gone; a whole pass
where nobody has asked for one for a while, so that what a vanishing file said is known, and a page
that nobody scrapes stays true to its /readyz. An error in either is told once and tried again: an
agent that is gone tells nothing of any process.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from opscope.agent.server import Latest

_SWEEP_S = 1.0


def run(
    latest: Latest,
    sweep: Callable[[], object],
    interval_s: float,
    stop: threading.Event,
    say: Callable[[str], None],
) -> None:
    """Returns once `stop` is set. `say` is told of errors."""
    last_error = ""
    while not stop.is_set():
        error = _look(latest, sweep, interval_s)
        if error != last_error:
            say(error or "passes go on without an error")
            last_error = error
        stop.wait(min(_SWEEP_S, interval_s))


def _look(latest: Latest, sweep: Callable[[], object], interval_s: float) -> str:
    age_s = latest.age_s
    try:
        if age_s is None or age_s >= interval_s:
            latest.snapshot()
        else:
            latest.between(sweep)
    except Exception as error:
        return f"a pass failed, and is tried again: {type(error).__name__}: {error}"
    return ""
