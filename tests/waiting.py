"""Wait for a condition that no event reports: poll it, and fail after a limit.

Programs that tests start get the same function as text, `UNTIL`, which they begin with.
"""

import inspect
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(
    condition: "Callable[[], T]",
    what: str,
    meanwhile: "Callable[[], object] | None" = None,
    pause_s: float = 0.001,
    limit_s: float = 300.0,
) -> "T":
    """The first true value of the condition; AssertionError naming `what` after the limit.

    Between two polls it calls `meanwhile`, or else sleeps.
    """
    import time

    deadline = time.monotonic() + limit_s
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {limit_s:g} s: {what}"
        meanwhile() if meanwhile else time.sleep(pause_s)
    return found


UNTIL = "\n" + inspect.getsource(until) + "\n"
