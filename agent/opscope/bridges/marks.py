"""Ranges that libraries mark themselves, through NVTX or ITT: what their two bridges share.

native/include/private/marks.h says how marks become ranges, what that costs a program, and why a
program must ask for it with the setting `marks`.
"""

import os
from _thread import allocate_lock
from typing import TYPE_CHECKING

from opscope import _native
from opscope._native import ffi, lib
from opscope.errors import BridgeError

if TYPE_CHECKING:
    from opscope.bridges.status import BridgeStatus


def library() -> str:
    """The path of the library that the environment names to NVTX and ITT."""
    directory = os.path.dirname(os.path.abspath(_native.__file__))
    return os.path.join(directory, "libopscope_marks.so")


class Marks:
    """The marks of one kind. `variable` is the environment variable that names the library."""

    def __init__(self, kind: int, variable: str) -> None:
        self._kind = kind
        self._reasons = {
            lib.OPSCOPE_ERR_BUSY: f"{variable} names another tool",
            lib.OPSCOPE_ERR_WOULD_DEADLOCK: f"{variable} cannot be set while other threads run",
        }
        self._lock = allocate_lock()
        self._reason = "not attached"

    def attach(self) -> None:
        """Follows the marks of each library that makes its first one from now on.

        Raises BridgeError with the reason if the library cannot be named to them.
        """
        path = library()
        with self._lock:
            code = lib.opscope_marks_attach(self._kind, os.fsencode(path))
            if code != lib.OPSCOPE_OK:
                text = str(ffi.string(lib.opscope_status_text(code)).decode())
                self._reason = self._reasons.get(code, f"{path}: {text}")
                raise BridgeError(self._reason)
            self._reason = "attached"

    def detach(self) -> None:
        """Follows no more marks. Open ranges end as usual; does nothing unless attached."""
        with self._lock:
            if self._reason == "attached":
                lib.opscope_marks_detach(self._kind)
            self._reason = "not attached"

    def facts(self) -> dict[str, str]:
        """Notes on the process: none."""
        return {}

    def status(self) -> "BridgeStatus":
        """The bridge's status. `pointers` is the number of libraries whose marks are followed."""
        from opscope.bridges.status import BridgeStatus

        return BridgeStatus(
            attached=self._reason == "attached",
            reason=self._reason,
            version="",
            pointers=lib.opscope_marks_clients(self._kind),
            missed={},
        )
