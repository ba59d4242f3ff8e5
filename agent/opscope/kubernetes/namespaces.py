"""The annotations of namespaces, read from the API server and kept for a while."""

from __future__ import annotations

import json
import os
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote
from urllib.request import HTTPSHandler, ProxyHandler, Request, build_opener

_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_KEPT_S = 30.0
_TIMEOUT_S = 2.0
"""A pod waits for it."""
_ANSWER_BYTES = 1 << 20
_NAMESPACES_LIMIT = 10_000


class Namespaces:
    """Reads with the service account of this pod, which needs `get` on namespaces."""

    def __init__(
        self,
        url: str | None = None,
        account: str = _ACCOUNT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`url`: the API server's address, by default the one of the cluster."""
        host = os.environ.get("KUBERNETES_SERVICE_HOST", "kubernetes.default.svc")
        port = os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        bracketed = f"[{host}]" if ":" in host else host
        self._url = url or f"https://{bracketed}:{port}"
        self._account = account
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, Mapping[str, Any]]] = {}
        self.failure = ""
        """Why the last read failed; empty after a success."""

    def annotations(self, name: str) -> Mapping[str, Any]:
        """Of this namespace, at most half a minute old; after a failure the last known ones, or
        none. Never raises."""
        now = self._clock()
        with self._lock:
            at, known = self._known.get(name, (-_KEPT_S, {}))
        if now - at < _KEPT_S:
            return known
        try:
            known = self._read(name)
            self.failure = ""
        except Exception as error:
            self.failure = f"namespace {name}: {error}"
        with self._lock:
            if len(self._known) >= _NAMESPACES_LIMIT:
                self._known.clear()
            # After a failure too: pods do not wait for a dead server one after another.
            self._known[name] = now, known
        return known

    def _read(self, name: str) -> Mapping[str, Any]:
        # Kubernetes renews the token's file.
        with open(os.path.join(self._account, "token"), encoding="ascii") as file:
            headers = {"Authorization": f"Bearer {file.read().strip()}"}
        trusted = ssl.create_default_context(cafile=os.path.join(self._account, "ca.crt"))
        opener = build_opener(ProxyHandler({}), HTTPSHandler(context=trusted))
        address = f"{self._url}/api/v1/namespaces/{quote(name, safe='')}"
        with opener.open(Request(address, headers=headers), timeout=_TIMEOUT_S) as answer:
            found = json.loads(answer.read(_ANSWER_BYTES))
        annotations = found["metadata"].get("annotations") or {}
        if not isinstance(annotations, dict):
            raise TypeError("its annotations are no mapping")
        return annotations
