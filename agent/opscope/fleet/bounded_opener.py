"""HTTP to a store with bounds: on the bytes of an answer, and the seconds of an exchange.

It uses urllib with the environment's proxies. It follows no redirect, which would send the headers,
including credentials, to another server.
"""

from __future__ import annotations

import http.client
import socket
from contextlib import suppress
from typing import Any
from urllib.error import HTTPError
from urllib.request import (
    HTTPHandler,
    HTTPRedirectHandler,
    HTTPSHandler,
    Request,
    build_opener,
)

from opscope.name_lookup import NameLookup
from opscope.total_deadline import TotalDeadline, read_at_most

_SAID_BYTES = 64 << 10
_LOOKUP = NameLookup()


class Refusal(Exception):  # noqa: N818 - a status, not an error of this program
    """A status that is not 2xx."""

    def __init__(self, status: int, reason: str, body: bytes) -> None:
        super().__init__(f"{status} {reason}")
        self.status = status
        self.reason = reason
        self.body = body


def answered(request: Request, seconds: float, limit_bytes: int) -> bytes:
    """The whole body of a 2xx answer.

    Raises Refusal for any other status, TimeoutError or TooLong beyond a bound, OSError or
    HTTPException on failure.
    """
    deadline = TotalDeadline(_LOOKUP)
    opener = build_opener(_Http(deadline), _Https(deadline), _NoRedirect())
    late = TimeoutError(f"no whole answer within {seconds:g} s")
    with deadline.within(seconds):
        try:
            with opener.open(request, timeout=seconds) as answer:
                found = read_at_most(answer.read, limit_bytes)
                if answer.length:
                    raise http.client.IncompleteRead(found, answer.length)
        except HTTPError as error:
            body = b""
            with error, suppress(OSError, http.client.HTTPException):
                body = error.read(_SAID_BYTES)
            raise Refusal(error.code, str(error.reason), body) from error
        except (OSError, http.client.HTTPException) as error:
            if deadline.is_over:
                raise late from error
            raise
    if deadline.is_over:
        raise late
    return found


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _watched(kind: Any, deadline: TotalDeadline) -> Any:
    class Watched(kind):  # type: ignore[misc]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self._create_connection = self._connected

        def _connected(
            self, to: tuple[str, int], timeout: float | None, source: Any = None
        ) -> socket.socket:
            host, port = to

            def connect(address: str, seconds: float) -> socket.socket:
                return socket.create_connection((address, port), seconds, source)

            made = deadline.connected(host, port, connect)
            made.settimeout(timeout)
            deadline.watch(made)
            return made

        def connect(self) -> None:
            super().connect()
            deadline.watch(self.sock)

    return Watched


class _Http(HTTPHandler):
    def __init__(self, deadline: TotalDeadline) -> None:
        super().__init__()
        self._kind = _watched(http.client.HTTPConnection, deadline)

    def http_open(self, req: Request) -> Any:
        return self.do_open(self._kind, req)


class _Https(HTTPSHandler):
    def __init__(self, deadline: TotalDeadline) -> None:
        super().__init__()
        self._kind = _watched(http.client.HTTPSConnection, deadline)

    def https_open(self, req: Request) -> Any:
        return self.do_open(self._kind, req)
