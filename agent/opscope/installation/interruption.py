"""Ctrl-C, SIGTERM and SIGHUP during an installation: handled at safe points only.

Within `with Interruption() as interruption` such a signal is held until a block `with
interruption.allowed()` or a call of `interruption.check()`, which raise Interrupted. So the code
between two of these points, and all code that undoes changes, runs to its end. A signal that was
ignored before stays ignored.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from opscope.errors import OpscopeError

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """A signal that ends the program."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_status = 128 + number


@contextmanager
def obeyed(done: str) -> Iterator[Interruption]:
    """An Interruption; a signal ends the program, which reports that nothing is `done`."""
    try:
        with Interruption() as interruption:
            yield interruption
    except Interrupted as interrupted:
        print(f"Error: {interrupted}: nothing is {done}", file=sys.stderr)
        sys.exit(interrupted.exit_status)


def report(said: Sequence[str], errors: Sequence[OpscopeError]) -> None:
    """Prints what was done and what failed; exits with status 1 if anything failed."""
    for line in said:
        print(line)
    for error in errors:
        print(f"Error: {error}", file=sys.stderr)
    if errors:
        sys.exit(1)


class Interruption:
    """For the main thread."""

    def __init__(self) -> None:
        self._earlier: dict[int, Any] = {}
        self._waiting = 0
        self._is_allowed = False

    def __enter__(self) -> Interruption:
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._earlier[number] = signal.signal(number, self._arrived)
        return self

    def __exit__(self, *_: object) -> None:
        for number, earlier in self._earlier.items():
            signal.signal(number, earlier)

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """A block in which a signal raises Interrupted at once."""
        self._is_allowed = True
        try:
            self.check()
            yield
        finally:
            self._is_allowed = False

    def check(self) -> None:
        """Raises Interrupted if a signal is being held."""
        if self._waiting:
            raise Interrupted(self._waiting)

    def _arrived(self, number: int, _: FrameType | None) -> None:
        self._waiting = number
        if self._is_allowed:
            # Only once: a second signal must not interrupt the undoing.
            self._is_allowed = False
            raise Interrupted(number)
