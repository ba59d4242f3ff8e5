"""What a bridge says of itself. A module of its own, as attaching has no use for it."""

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
