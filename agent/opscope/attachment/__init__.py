"""Attach to unmodified programs, and let programs attach themselves.

There are three ways in, and one implementation (session.py). `opscope run`, or a payload in a
container, puts site/sitecustomize.py first on PYTHONPATH. `opscope install` installs a .pth file
that runs it (installation/). Both call the session when the program imports a framework. A program
may also call `opscope.attach()`. Read in this order: launch.py, site/sitecustomize.py, entry.py,
session.py, policy.py, interpreter.py, program.py, ledger.py.

Only the main interpreter of a process attaches: opscope's extension has one state for the process,
and objects that it lends to a framework would outlive a subinterpreter. A subinterpreter loads no
part of it; a framework imported there stays unobserved, with that reason.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from opscope.attachment.status import AttachStatus

__all__ = ["attach", "attach_status", "detach"]


def attach() -> None:
    """Starts recording in this process and attaches the bridges of the configuration.

    Attaches to frameworks that are imported later as the program imports them. A second call does
    nothing. Never raises because of opscope: if this process cannot or must not be observed,
    `attach_status()` has the reason. The kill switch and exclude globs apply; the built-in deny
    list and include globs do not, since the program asks for it.
    """
    from opscope.attachment import session

    session.attach()


def detach() -> None:
    """Detaches all bridges and stops recording; the segment stays for the host agent."""
    from opscope.attachment import session

    session.detach()


def attach_status() -> "AttachStatus":
    """Whether this process is observed, and for each framework `attached` or the reason."""
    from opscope.attachment import session

    return session.status()
