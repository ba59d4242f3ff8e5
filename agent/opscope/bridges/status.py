"""The status of a bridge. A separate module, since attaching does not need it."""

from typing import NamedTuple


class BridgeStatus(NamedTuple):
    """The status of a bridge."""

    attached: bool
    reason: str
    """`attached`, or the reason why not."""
    version: str
    """The framework's version; empty if the program has not imported it."""
    pointers: int
    """Number of the framework's pointers that are replaced."""
    missed: dict[str, str]
    """Operators that should be visible and are not, with the reason."""
