"""A store of metrics with Prometheus's HTTP API: Prometheus, Mimir, Thanos, VictoriaMetrics.

https://prometheus.io/docs/prometheus/latest/querying/api/ defines the API. Its answers are not
trusted: their size is bounded (bounded_opener.py), malformed numbers and labels are dropped, and
control characters are removed from text for the terminal.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPException
from typing import Any, NamedTuple
from urllib.error import URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import Request

from opscope.errors import FleetError
from opscope.fleet.bounded_opener import Refusal, answered
from opscope.printable import printable
from opscope.total_deadline import TooLong

_ANSWER_BYTES = 32 << 20
_SAID_LIMIT = 500
_LABEL_LIMIT = 1024
_HINTS = {
    401: "; --header gives an authorization",
    403: "; --header gives an authorization, or a tenant",
    404: "; --url or OPSCOPE_FLEET_URL must be the address before /api/v1/query",
}


class Sample(NamedTuple):
    labels: Mapping[str, str]
    value: float


class Store:
    """`url`: the address before `/api/v1/query`. `headers` go with every request: an authorization,
    or a tenant."""

    def __init__(
        self, url: str, headers: Mapping[str, str] | None = None, timeout_s: float = 60.0
    ) -> None:
        if urlsplit(url).scheme not in ("http", "https"):
            raise FleetError(f"--url {url!r}: must begin with http:// or https://")
        self.url = url.rstrip("/")
        self._headers = dict(headers or {})
        self._timeout_s = timeout_s

    def query(self, promql: str, at_s: float | None = None) -> list[Sample]:
        """The answer at a time (Unix seconds), or now, without values that are not finite. Raises
        FleetError."""
        asked = {"query": promql} | ({} if at_s is None else {"time": f"{at_s:.3f}"})
        answer = self._ask("query", asked)
        try:
            found = [
                Sample(_labels(one["metric"]), float(one["value"][1]))
                for one in answer
                if "value" in one
            ]
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise self._no_answer() from error
        return [sample for sample in found if math.isfinite(sample.value)]

    def last_time(self, promql: str, begin_s: float, end_s: float, step_s: float) -> float | None:
        """The last time, in steps of `step_s`, with an answer. Raises FleetError."""
        asked = {"query": promql, "start": f"{begin_s:.3f}", "end": f"{end_s:.3f}"}
        answer = self._ask("query_range", asked | {"step": f"{step_s:.3f}"})
        try:
            found = max((float(one["values"][-1][0]) for one in answer), default=None)
        except (LookupError, TypeError, ValueError) as error:
            raise self._no_answer() from error
        if found is not None and not begin_s - step_s <= found <= end_s + step_s:
            raise self._no_answer()
        return found

    def _ask(self, path: str, asked: Mapping[str, str]) -> list[dict[str, Any]]:
        # By POST, since a query may be longer than a URL.
        request = Request(
            f"{self.url}/api/v1/{path}", urlencode(asked).encode(), self._headers, method="POST"
        )
        try:
            found = json.loads(answered(request, self._timeout_s, _ANSWER_BYTES))
            result: list[dict[str, Any]] = found["data"]["result"]
        except Refusal as error:
            said = _said(error) + _hint(error.status)
            raise FleetError(f"{self.url}: {error.status}: {said}") from error
        except TooLong as error:
            raise FleetError(f"{self.url}: {error}; select less with --service") from error
        except (URLError, OSError, HTTPException) as error:
            reason = _plain(str(getattr(error, "reason", error)) or type(error).__name__)
            raise FleetError(
                f"{self.url} does not answer: {reason}; set --url or OPSCOPE_FLEET_URL to the "
                "address of the store of metrics"
            ) from error
        except (KeyError, RecursionError, TypeError, ValueError) as error:
            raise self._no_answer() from error
        if not isinstance(result, list):
            raise self._no_answer()
        return result

    def _no_answer(self) -> FleetError:
        return FleetError(
            f"{self.url}: the answer does not follow Prometheus's API; --url or OPSCOPE_FLEET_URL "
            "must be the address before /api/v1/query"
        )


def _labels(given: dict[str, str]) -> dict[str, str]:
    """Raises TypeError or AttributeError for malformed labels."""
    found = {}
    for key, value in given.items():
        if not isinstance(value, str):
            raise TypeError("a label is not a text")
        found[key] = _plain(value, _LABEL_LIMIT)
    return found


def _plain(text: str, limit: int = _SAID_LIMIT) -> str:
    return printable(text[:limit])


def _hint(status: int) -> str:
    if 300 <= status < 400:
        return "; redirects are not followed: set --url to the store's own address"
    return _HINTS.get(status, "")


def _said(refusal: Refusal) -> str:
    """The store's own error message."""
    text = refusal.body.decode(errors="replace")
    with suppress(KeyError, RecursionError, TypeError, ValueError):
        text = str(json.loads(text)["error"])
    return _plain(" ".join(text.split())) or _plain(refusal.reason)
