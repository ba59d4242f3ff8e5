"""A trace of one process, taken from the live page: POST /api/trace.

Reading the page gives no right to take a trace: a trace costs the process time, and shows its
operators one by one. As with `opscope trace`, only the process's user and root may take one. The
kernel says which user opened the connection (peer.py), so there is no secret to hand out, and none
to steal; this works over loopback alone. A web page that the same user has open elsewhere must not
use that right: the request is a POST of JSON with the Origin of this page, whose host must be this
host's own name or address, so no other page can send it, also not through a name that it points
here. What comes through a proxy is refused: its user would be the proxy's. Length, size and number
are bounded.
"""

from __future__ import annotations

import io
import json
import os
import threading
from collections.abc import Sequence
from email.message import Message
from gzip import GzipFile
from http import HTTPStatus

from opscope import __version__
from opscope.control import control_block
from opscope.control.control_block import FoundProcess
from opscope.errors import OpscopeError
from opscope.server import peer
from opscope.server.http_server import Action, Answer, Call, names_this_host

PATH = "/api/trace"
LEAST_S, MOST_S = 0.1, 30.0
# Some 300,000 ranges, so that the agent needs a moment for the file, and few MiB.
_BYTES = 8 << 20
_ZIP_LEVEL = 6
_PROXY_HEADERS = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Via")
_HOW = "or use `opscope trace`"


class _RefusedError(Exception):
    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status


class PageTrace:
    def __init__(self, patterns: Sequence[str]) -> None:
        """`patterns`: globs of the directories with segments."""
        self._patterns = tuple(patterns)
        self._lock = threading.Lock()

    @property
    def actions(self) -> dict[str, Action]:
        return {PATH: self.answer}

    def answer(self, call: Call) -> Answer:
        """The trace as compressed Chrome JSON, or the reason for a refusal."""
        if not self._lock.acquire(blocking=False):
            text = "a trace is already being taken from a page; try again when it has ended\n"
            return Answer(text.encode(), status=HTTPStatus.CONFLICT)
        try:
            _check_origin(call.headers)
            user = peer.user_of(call.ours, call.peer)
            if user is None:
                raise _RefusedError(
                    HTTPStatus.FORBIDDEN,
                    "a trace can only be taken from this host: open http://127.0.0.1:PORT/ here, "
                    f"or through `ssh -L`, {_HOW}",
                )
            pid, seconds = _wanted(call.body)
            return Answer(_taken(self._chosen(pid, user), seconds), "application/gzip")
        except _RefusedError as error:
            return Answer(f"{error}\n".encode(), status=error.status)
        except OpscopeError as error:
            return Answer(f"{error}\n".encode(), status=HTTPStatus.CONFLICT)
        finally:
            self._lock.release()

    def _chosen(self, pid: int, user: int) -> list[FoundProcess]:
        found = control_block.by_pid(control_block.find(self._patterns), pid)
        if not found:
            raise _RefusedError(HTTPStatus.NOT_FOUND, f"pid {pid}: no such observed process")
        for one in found:
            owner = os.stat(one.path, follow_symlinks=False).st_uid
            if user not in (owner, 0):
                raise _RefusedError(
                    HTTPStatus.FORBIDDEN,
                    f"pid {pid} belongs to uid {owner}; only that user and root can take a trace "
                    f"of it, and this page was opened by uid {user}",
                )
        return found


def _check_origin(headers: Message) -> None:
    host, origin = headers.get("Host", ""), headers.get("Origin", "")
    is_ours = (
        len(headers.get_all("Host", [])) == 1
        and host != ""
        and names_this_host(host)
        and origin in (f"http://{host}", f"https://{host}")
        and headers.get("Sec-Fetch-Site", "same-origin") == "same-origin"
        and headers.get_content_type() == "application/json"
    )
    if not is_ours:
        raise _RefusedError(
            HTTPStatus.FORBIDDEN,
            "only the agent's own page can ask for a trace, at localhost or an IP address; open "
            f"http://127.0.0.1:PORT/ here, or through `ssh -L`, {_HOW}",
        )
    if any(name in headers for name in _PROXY_HEADERS):
        raise _RefusedError(
            HTTPStatus.FORBIDDEN, f"a trace cannot be taken through a proxy; connect to it, {_HOW}"
        )


def _wanted(body: bytes) -> tuple[int, float]:
    try:
        given = json.loads(body)
        pid, seconds = given["pid"], given["seconds"]
        is_fine = type(pid) is int and type(seconds) in (int, float)
        if is_fine and 0 < pid < 1 << 31 and LEAST_S <= seconds <= MOST_S:
            return pid, float(seconds)
    except (ValueError, TypeError, LookupError, RecursionError):
        pass
    text = f'expected {{"pid": NUMBER, "seconds": {LEAST_S:g} to {MOST_S:g}}}'
    raise _RefusedError(HTTPStatus.BAD_REQUEST, text)


def _taken(found: Sequence[FoundProcess], seconds: float) -> bytes:
    # Imported here: most agents never take a trace.
    from opscope.control import trace
    from opscope.control.trace_source import source_of
    from opscope.timeline import chrome

    taken = trace.take(found, seconds, _BYTES)
    sources = [source_of(one.found, one.trace) for one in taken if one.trace is not None]
    if not sources:
        reasons = "; ".join(one.text for one in taken)
        raise _RefusedError(HTTPStatus.CONFLICT, f"no trace was recorded: {reasons}")
    raw = io.BytesIO()
    with (
        GzipFile("", "wb", _ZIP_LEVEL, raw) as packed,
        io.TextIOWrapper(packed, "ascii") as file,
    ):
        chrome.write(file, sources, {"opscope": __version__, "seconds": seconds})
    return raw.getvalue()
