"""The exceptions of Opscope, and the conversion of C status codes to exceptions."""

from opscope._native import ffi, lib


class OpscopeError(Exception):
    """Base of every error that Opscope raises on purpose; its text has the problem and a remedy."""


class ConfigError(OpscopeError):
    """A setting has an invalid value; the text names the setting and the value."""


class RecorderError(OpscopeError):
    """The recorder could not start or stop; the program continues unobserved."""


class BridgeError(OpscopeError):
    """A framework cannot be observed; it is unchanged."""


class CallbackError(OpscopeError):
    """A callback could not be added or removed."""


class TaskLostError(OpscopeError):
    """The task was running in another thread when the process forked; it does not exist here."""


class AgentError(OpscopeError):
    """The host agent cannot do what was requested, for example because a port is taken."""


class FleetError(OpscopeError):
    """The store of the fleet's metrics does not answer, or lacks the requested data."""


class ModelFileError(OpscopeError):
    """A model's file cannot be read; the text names file, entry and reason."""


class ScriptError(OpscopeError):
    """Python code cannot become a graph; the text shows the line with a caret, says what is wrong
    and what to write instead."""

    def __init__(
        self,
        problem: str,
        *,
        file: str = "",
        line: int = 0,
        column: int = 0,
        width: int = 1,
        source: str = "",
        remedy: str = "",
    ) -> None:
        self.problem = problem
        self.file = file
        self.line = line
        self.column = column
        """Characters of `source` before the caret."""
        self.source = source
        """The line in the file."""
        self.remedy = remedy
        place = f"{file}:{line}: " if file else ""
        text = f"{place}{problem}"
        if source:
            indent = len(source) - len(source.lstrip())
            marks = " " * (column - indent) + "^" + "~" * (width - 1)
            text += f"\n    {source[indent:]}\n    {marks}"
        if remedy:
            text += f"\nWrite instead: {remedy}."
        super().__init__(text)

    def add_caller(self, file: str, line: int) -> None:
        """Adds to the text where the function with the error is called."""
        self.args = (f"{self}\nCalled at {file}:{line}.",)


def check(status: int, what: str, error: type[OpscopeError] = OpscopeError) -> None:
    """Raise `error` with `what` and the meaning of `status`, unless it is OPSCOPE_OK."""
    if status == lib.OPSCOPE_OK:
        return
    if status == lib.OPSCOPE_ERR_NO_MEMORY:
        raise MemoryError(what)
    reason = ffi.string(lib.opscope_status_text(status)).decode()
    raise error(f"{what}: {reason}")
