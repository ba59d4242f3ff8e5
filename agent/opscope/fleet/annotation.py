"""Post an annotation to Grafana: a line, or a span, on its graphs, such as a release.

https://grafana.com/docs/grafana/latest/developers/http_api/annotations/ defines the API. The
answer is not trusted (bounded_opener.py).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import Request

from opscope.errors import FleetError
from opscope.fleet.bounded_opener import Refusal, answered
from opscope.printable import printable
from opscope.total_deadline import TooLong

CAPTURE = "opscope-capture"
"""The tag of recorded timelines."""
_ANSWER_BYTES = 1 << 20
_SAID_LIMIT = 500
_HINTS = {
    401: "; GRAFANA_TOKEN or --token-file must hold the token of a service account",
    403: "; the service account needs the permission annotations:create",
    404: "; --url or GRAFANA_URL must be Grafana's address, with its sub-path if it has one",
}


@dataclass(frozen=True)
class Annotation:
    text: str
    tags: Sequence[str]
    start_ms: int
    """Unix milliseconds."""
    end_ms: int | None = None
    """None: a moment."""
    dashboard: str | None = None
    """UID of the only dashboard that shows it; None: all that ask for one of its tags."""

    def body(self) -> dict[str, object]:
        """As Grafana's API takes it."""
        found: dict[str, object] = {
            "time": self.start_ms,
            "tags": list(self.tags),
            "text": self.text,
        }
        if self.end_ms is not None:
            found["timeEnd"] = self.end_ms
        if self.dashboard is not None:
            found["dashboardUID"] = self.dashboard
        return found


def post(
    url: str,
    annotation: Annotation,
    *,
    token: str = "",
    headers: Mapping[str, str] | None = None,
    timeout_s: float = 30.0,
) -> int | None:
    """Sends it to the Grafana at `url`; the annotation's id, None if the answer has none.

    Raises FleetError if Grafana does not answer, or refuses, or something else answers.
    """
    if urlsplit(url).scheme not in ("http", "https"):
        raise FleetError(f"--url {url!r}: must begin with http:// or https://")
    given = {"Content-Type": "application/json", "Accept": "application/json", **(headers or {})}
    if token:
        given["Authorization"] = f"Bearer {token}"
    body = json.dumps(annotation.body()).encode()
    try:
        request = Request(f"{url.rstrip('/')}/api/annotations", body, given, method="POST")
        answer = answered(request, timeout_s, _ANSWER_BYTES)
    except Refusal as error:
        raise FleetError(f"{url}: {error.status}: {_said(error)}{_hint(error.status)}") from error
    except (URLError, OSError, HTTPException, TooLong, ValueError) as error:
        reason = printable(str(getattr(error, "reason", error))[:_SAID_LIMIT])
        raise FleetError(f"{url} does not answer: {reason or type(error).__name__}") from error
    known: object = None
    with suppress(ValueError, RecursionError):
        known = json.loads(answer)
    if not isinstance(known, dict):
        raise FleetError(f"{url}: not Grafana's answer{_HINTS[404]}")
    with suppress(ValueError, TypeError, KeyError):
        return int(known["id"])
    return None


def _hint(status: int) -> str:
    if 300 <= status < 400:
        return "; redirects are not followed: set --url to Grafana's own address"
    return _HINTS.get(status, "")


def _said(refusal: Refusal) -> str:
    """Grafana's own message."""
    text = refusal.body.decode(errors="replace")
    with suppress(KeyError, RecursionError, TypeError, ValueError):
        text = str(json.loads(text)["message"])
    return printable(" ".join(text.split())[:_SAID_LIMIT]) or printable(refusal.reason)
