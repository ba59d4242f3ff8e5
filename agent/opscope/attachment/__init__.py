"""How an unmodified program becomes observed, and how one attaches itself.

Three ways in, one behind all (session.py): `opscope run`, or a payload in a container, puts
site/sitecustomize.py first on PYTHONPATH, `opscope install` has a .pth file run it (installation/),
and it calls the session when a framework is imported; or a program calls `opscope.attach()`.
Reading order: launch.py, site/sitecustomize.py, entry.py, session.py, policy.py, program.py,
ledger.py.

Only the main interpreter of a process attaches: opscope's extension has one state for the process,
and what it lends to a framework would outlive a subinterpreter. Nothing of it is loaded in one; a
framework imported there is left alone, with that reason.
"""

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


def attach_status() -> "AttachStatus":
    """Whether this process is observed, which bridges are attached, and where not, why."""
    from opscope.attachment import session

    return session.status()
