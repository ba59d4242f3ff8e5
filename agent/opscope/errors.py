"""The exceptions of Opscope, and the one place where C status codes become exceptions."""

from opscope._native import ffi, lib


class OpscopeError(Exception):
    """Base of every error Opscope raises on purpose; its text says what happened and what to do."""


class ConfigError(OpscopeError):
    """A setting has a value that cannot be used; the text names the setting and the value."""


class RecorderError(OpscopeError):
    """The recorder could not start or stop; the program goes on unobserved."""


class BridgeError(OpscopeError):
    """A framework cannot be observed; nothing of it was changed."""


class CallbackError(OpscopeError):
    """A callback could not be added or removed."""


class TaskLostError(OpscopeError):
    """The task was running in another thread when the process forked; it does not exist here."""


class AgentError(OpscopeError):
    """The host agent cannot do what was asked, a taken port for instance."""


class FleetError(OpscopeError):
    """The store of the fleet's metrics cannot be asked, or has not what was asked for."""


def check(status: int, what: str, error: type[OpscopeError] = OpscopeError) -> None:
    """Raise ``error`` with ``what`` and the meaning of ``status``, unless it is OPSCOPE_OK."""
    if status == lib.OPSCOPE_OK:
        return
    if status == lib.OPSCOPE_ERR_NO_MEMORY:
        raise MemoryError(what)
    reason = ffi.string(lib.opscope_status_text(status)).decode()
    raise error(f"{what}: {reason}")
