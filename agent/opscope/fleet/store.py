"""A store of metrics that answers Prometheus's HTTP API: Prometheus, Mimir, Thanos,
VictoriaMetrics. https://prometheus.io/docs/prometheus/latest/querying/api/"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen

from opscope.errors import FleetError

_SAID_LIMIT = 500
_HINTS = {
    401: "; --header gives an authorization",
    403: "; --header gives an authorization, or a tenant",
    404: "; --url or OPSCOPE_FLEET_URL is what /api/v1/query is beneath",
}


class Sample(NamedTuple):
    labels: Mapping[str, str]
    value: float


class Store:
    """`url`: what `/api/v1/query` is beneath. `headers` go with every request: an authorization,
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
        """The answer as of a time, or of now; without values that are no number. Raises
        FleetError."""
        asked = {"query": promql} | ({} if at_s is None else {"time": f"{at_s:.3f}"})
        answer = self._ask("query", asked)
        try:
            found = [
                Sample(dict(one["metric"]), float(one["value"][1]))
                for one in answer
                if "value" in one
            ]
        except (LookupError, TypeError, ValueError) as error:
            raise self._no_answer() from error
        return [sample for sample in found if not math.isnan(sample.value)]

    def last_time(self, promql: str, begin_s: float, end_s: float, step_s: float) -> float | None:
        """The last of the moments, `step_s` apart, at which there is an answer. Raises
        FleetError."""
        asked = {"query": promql, "start": f"{begin_s:.3f}", "end": f"{end_s:.3f}"}
        answer = self._ask("query_range", asked | {"step": f"{step_s:.3f}"})
        try:
            return max((float(one["values"][-1][0]) for one in answer), default=None)
        except (LookupError, TypeError, ValueError) as error:
            raise self._no_answer() from error

    def _ask(self, path: str, asked: Mapping[str, str]) -> list[dict[str, Any]]:
        # By POST, as a query may be longer than an address can be.
        request = Request(
            f"{self.url}/api/v1/{path}", urlencode(asked).encode(), self._headers, method="POST"
        )
        try:
            with urlopen(request, timeout=self._timeout_s) as answer:
                found = json.load(answer)
            result: list[dict[str, Any]] = found["data"]["result"]
        except HTTPError as error:
            with error:
                said = _said(error) + _HINTS.get(error.code, "")
            raise FleetError(f"{self.url}: {error.code}: {said}") from error
        except (URLError, OSError) as error:
            reason = getattr(error, "reason", error)
            raise FleetError(
                f"{self.url} does not answer: {reason}; --url or OPSCOPE_FLEET_URL says where "
                "the store of the metrics is"
            ) from error
        except (KeyError, TypeError, ValueError) as error:
            raise self._no_answer() from error
        return result

    def _no_answer(self) -> FleetError:
        return FleetError(
            f"{self.url}: what it answers is not of Prometheus's API; --url or OPSCOPE_FLEET_URL "
            "is what /api/v1/query is beneath"
        )


def _said(error: HTTPError) -> str:
    """What the store says is wrong."""
    text = error.read(65536).decode(errors="replace")
    try:
        text = json.loads(text)["error"]
    except (KeyError, TypeError, ValueError):
        pass
    return " ".join(text.split())[:_SAID_LIMIT] or error.reason
