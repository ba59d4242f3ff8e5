"""Bridges make another framework's operators appear as ranges, one module for each framework.

A bridge has ``attach()``, ``detach()``, ``status()`` and ``seen()``. It never imports its
framework: it takes what the program has imported already.
"""

from typing import NamedTuple


class BridgeStatus(NamedTuple):
    """How a bridge stands now."""

    attached: bool
    reason: str
    """``attached``, or why it is not."""
    version: str
    """The framework's, empty where the program has not imported it."""
    pointers: int
    """How many pointers of the framework are replaced."""
    missed: dict[str, str]
    """Operators that should be seen and are not, and why."""
