"""The HTTP session for OTLP, with limits on the time and memory that a receiver can take.

An answer has a limit in bytes, and an exchange one deadline over connecting, sending and reading.
Only 2xx is success; redirects are not followed; a receiver that requests a retry gets it after a
minimum pause. The SDK decides when to retry, and until when.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from datetime import timezone
from email.utils import parsedate_to_datetime
from http.cookiejar import DefaultCookiePolicy
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import HTTPError, NewConnectionError

from opscope.name_lookup import NameLookup
from opscope.total_deadline import TotalDeadline, read_at_most

_ANSWER_BYTES = 1 << 20
_LEAST_PAUSE_S, _MOST_PAUSE_S = 0.8, 86400.0
"""Bounds of a pause in seconds; the lower one is that of the SDK's own pauses."""
_TIMEOUT_S = 30.0
"""Seconds, if no timeout is given."""


class NotTaken(requests.RequestException):
    """The receiver answered, and did not accept the data."""


def session(
    look: Callable[..., None], provided: requests.Session | None = None
) -> requests.Session:
    """`look` is called with each whole response. `provided`: the session of a credential provider,
    which gets the same limits; an adapter of its own class stays, without them.

    The session uses the certificate of the OTEL_* variables: by itself, requests prefers
    REQUESTS_CA_BUNDLE to a session's own `verify`.
    """
    made: Any = requests.Session() if provided is None else provided
    made.hooks["response"].append(look)
    # Disables decompression of answers, and cookies.
    made.headers["Accept-Encoding"] = "identity"
    made.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    for prefix, adapter in [*made.adapters.items()]:
        if type(adapter) is HTTPAdapter:
            made.mount(prefix, _Adapter())
    merge = made.merge_environment_settings

    def merged(*arguments: Any) -> Any:
        settings = merge(*arguments)
        return settings if made.verify is True else {**settings, "verify": made.verify}

    made.merge_environment_settings = merged
    found: requests.Session = made
    return found


class _Adapter(HTTPAdapter):
    def __init__(self) -> None:
        self._deadline = TotalDeadline(NameLookup())
        super().__init__(pool_maxsize=1)

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, **options)
        self._watch(self.poolmanager)

    def proxy_manager_for(self, *arguments: Any, **options: Any) -> Any:
        made = super().proxy_manager_for(*arguments, **options)
        self._watch(made)
        return made

    def _watch(self, manager: Any) -> None:
        http, https = (_watched(kind, self._deadline) for kind in (HTTPConnection, HTTPSConnection))
        manager.pool_classes_by_scheme = {
            "http": type("Pool", (HTTPConnectionPool,), {"ConnectionCls": http}),
            "https": type("Pool", (HTTPSConnectionPool,), {"ConnectionCls": https}),
        }

    def send(self, request: Any, *_: Any, **options: Any) -> requests.Response:
        timeout_s = options.get("timeout")
        timeout_s = timeout_s if isinstance(timeout_s, (int, float)) else _TIMEOUT_S
        options.update(stream=True, timeout=timeout_s)
        late = requests.ReadTimeout(f"no whole answer within {timeout_s:g} s")
        with self._deadline.within(timeout_s):
            try:
                response = super().send(request, **options)
                _take(response)
            except Exception as error:
                if self._deadline.is_over:
                    raise late from error
                raise
        if self._deadline.is_over:
            raise late  # cut-off headers would be parsed as if they were complete
        if 300 <= response.status_code < 400:
            to = "".join(c for c in response.headers.get("Location", "")[:200] if c.isprintable())
            raise NotTaken(
                f"{response.status_code} {response.reason}: redirects are not followed"
                + (f"; it names {to}" if to else "")
            )
        _bound_pause(response)
        return response


def _watched(base: Any, deadline: TotalDeadline) -> Any:
    class Watched(base):  # type: ignore[misc]
        _dns_host: str

        def _new_conn(self) -> Any:
            name: str = self._dns_host
            try:
                made = deadline.connected(name, self.port, self._connected_to)
            except OSError as error:
                raise NewConnectionError(self, f"{name}: {error}") from error
            finally:
                self._dns_host = name
            deadline.watch(made)
            return made

        def _connected_to(self, address: str, seconds: float) -> Any:
            # TLS and the Host header keep the name.
            self._dns_host, self.timeout = address, seconds
            try:
                return super()._new_conn()
            except HTTPError as error:
                raise error.__cause__ or OSError(str(error)) from error

        def connect(self) -> None:
            super().connect()
            deadline.watch(self.sock)

    return Watched


def _take(response: requests.Response) -> None:
    """Reads the whole answer, or raises NotTaken."""
    try:
        body = read_at_most(
            lambda size: response.raw.read(size, decode_content=False), _ANSWER_BYTES
        )
    except ValueError as error:
        response.close()
        raise NotTaken(f"{response.status_code}: {error}") from error
    response.raw.release_conn()
    response.raw.close()
    whole: Any = response
    whole._content, whole._content_consumed = body, True


def _bound_pause(response: requests.Response) -> None:
    """Clamps Retry-After to a bounded number of seconds; removes an invalid one, so that the SDK's
    own pauses apply."""
    given = response.headers.pop("Retry-After", None)
    seconds = None if given is None else _seconds(given.strip())
    if seconds is not None:
        pause_s = min(max(seconds, _LEAST_PAUSE_S), _MOST_PAUSE_S)
        response.headers["Retry-After"] = f"{pause_s:g}"


def _seconds(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        try:
            date = parsedate_to_datetime(text)
            if date.tzinfo is None:
                date = date.replace(tzinfo=timezone.utc)
            seconds = date.timestamp() - time.time()
        except (TypeError, ValueError, OverflowError):
            return None
    return None if math.isnan(seconds) else seconds
