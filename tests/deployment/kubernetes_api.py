"""The part of Kubernetes' API that discovers pods: lists and watches, over HTTP.

https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

_ALL, _OF_NAMESPACE = "/api/v1/pods", "/api/v1/namespaces/"


class Pods:
    """The pods of a cluster; each change is an event, numbered from 1."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: set[tuple[str, str]] = set()
        """Paths and label selectors of requests."""
        self._events: list[tuple[str, dict[str, Any]]] = []
        self._changed = Condition()
        self._is_closed = False

    def add(self, pod: dict[str, Any]) -> None:
        self._tell("ADDED", pod)

    def remove(self, pod: dict[str, Any]) -> None:
        self._tell("DELETED", pod)

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _tell(self, kind: str, pod: dict[str, Any]) -> None:
        with self._changed:
            version = str(len(self._events) + 1)
            metadata = {**pod["metadata"], "resourceVersion": version}
            self._events.append((kind, {**pod, "metadata": metadata}))
            self._changed.notify_all()

    def now(self) -> tuple[list[dict[str, Any]], int]:
        """The current pods, and the number of the last event."""
        with self._changed:
            there: dict[str, dict[str, Any]] = {}
            for kind, pod in self._events:
                there.pop(pod["metadata"]["uid"], None)
                if kind == "ADDED":
                    there[pod["metadata"]["uid"]] = pod
            return list(there.values()), len(self._events)

    def events_after(self, number: int) -> Iterator[tuple[str, dict[str, Any]]]:
        """Later events, until this is closed."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_closed or len(self._events) > number)  # noqa: B023
                if self._is_closed:
                    return
                event = self._events[number]
            number += 1
            yield event


def pod_of(
    manifest: dict[str, Any], namespace: str, name: str, node: str, address: str, phase: str
) -> dict[str, Any]:
    """The API's object for a pod of a DaemonSet or Deployment."""
    template = manifest["spec"]["template"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **template["metadata"],
            "name": name,
            "namespace": namespace,
            "uid": f"{namespace}/{name}",
        },
        "spec": {**template["spec"], "nodeName": node},
        "status": {
            "phase": phase,
            "podIP": address,
            "podIPs": [{"ip": address}],
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _is_wanted(pod: dict[str, Any], path: str, selector: str) -> bool:
    metadata = pod["metadata"]
    if path != _ALL and path != f"{_OF_NAMESPACE}{metadata['namespace']}/pods":
        return False
    wanted = dict(pair.split("=", 1) for pair in selector.split(",") if pair)
    return bool(wanted.items() <= metadata["labels"].items())


@contextmanager
def kubernetes() -> Iterator[Pods]:
    pods = Pods()

    class Api(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = urlsplit(self.path)
            query = {key: values[-1] for key, values in parse_qs(asked.query).items()}
            if asked.path != _ALL and not asked.path.startswith(_OF_NAMESPACE):
                self.send_error(404)
                return
            selector = query.get("labelSelector", "")
            pods.asked.add((asked.path, selector))
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            if query.get("watch") in ("1", "true"):
                # A request without a version asks for the initial state as events.
                for kind, pod in pods.events_after(int(query.get("resourceVersion") or 0)):
                    if _is_wanted(pod, asked.path, selector):
                        self.wfile.write(json.dumps({"type": kind, "object": pod}).encode() + b"\n")
                        self.wfile.flush()
                return
            there, version = pods.now()
            wanted = [pod for pod in there if _is_wanted(pod, asked.path, selector)]
            whole = {
                "kind": "PodList",
                "apiVersion": "v1",
                "metadata": {"resourceVersion": str(version)},
                "items": wanted,
            }
            self.wfile.write(json.dumps(whole).encode())

        def log_message(self, format: str, *args: object) -> None:
            """Logs nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    server.daemon_threads = True
    pods.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield pods
    finally:
        pods.close()
        server.shutdown()
        thread.join()
        server.server_close()
