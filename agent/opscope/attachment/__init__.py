"""How an unmodified program becomes observed, and how one attaches itself.

Two ways in, one behind both (session.py): `opscope run` puts site/sitecustomize.py first on
PYTHONPATH, which calls the session when a framework is imported; a program may call
`opscope.attach()`. Reading order: launch.py, site/sitecustomize.py, entry.py, session.py,
policy.py, program.py, ledger.py.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from opscope.attachment.status import AttachStatus

__all__ = ["attach", "attach_status", "detach"]


def attach() -> None:
    """Starts recording in this process and attaches the bridges of the configuration.

    Frameworks not imported yet are attached to when they are. Repeating is a no-op. Never raises
    for a reason of opscope's own: where this process cannot or must not be observed,
    `attach_status()` says why. The kill switch and exclude globs hold; the built-in deny list and
    include globs do not, because the program asks for it.
    """
    from opscope.attachment import session

    session.attach()


def detach() -> None:
    """Takes all bridges off and stops recording; the segment stays for the host agent."""
    from opscope.attachment import session

    session.detach()


def attach_status() -> AttachStatus:
    """Whether this process is observed, which bridges are attached, and where not, why."""
    from opscope.attachment import session

    return session.status()
