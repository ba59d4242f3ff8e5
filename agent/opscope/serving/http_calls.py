"""The calls of HTTP: which path is which call, and their JSON.

Inference itself is in http_inference.py.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import unquote

from opscope.serving import http_inference
from opscope.serving.access import Access
from opscope.serving.faults import Reason, RequestError, bad_request
from opscope.serving.http_connection import Cancel, HttpReply, HttpRequest
from opscope.serving.http_inference import Done, failure
from opscope.serving.model_config import TensorSpec
from opscope.serving.protocol import EXTENSIONS
from opscope.serving.service import NAME, VERSION, Service

_MODEL = r"/v2/models/(?P<name>[^/]+)(?:/versions/(?P<version>[^/]+))?"
_INFER = re.compile(_MODEL + "/infer")
_Call = Callable[..., Awaitable[HttpReply]]
_CANNOT_DECODE = ("gzip", "deflate", "br", "zstd")


class HttpCalls:
    """Answers a complete request."""

    def __init__(self, service: Service, access: Access) -> None:
        self._service = service
        self._repository = service.repository
        self._access = access
        self._routes: list[tuple[str, re.Pattern[str], _Call | None]] = [
            (method, re.compile(path), call)
            for method, path, call in (
                ("POST", _INFER.pattern, None),
                ("GET", _MODEL + "/ready", self._model_ready),
                ("GET", _MODEL, self._model_metadata),
                ("GET", "/v2/health/live", self._live),
                ("GET", "/v2/health/ready", self._ready),
                ("GET", "/v2/?", self._metadata),
                ("POST", "/v2/repository/index", self._index),
                ("POST", "/v2/repository/models/(?P<name>[^/]+)/load", self._load),
                ("POST", "/v2/repository/models/(?P<name>[^/]+)/unload", self._unload),
            )
        ]

    def answer(self, request: HttpRequest, done: Done) -> Cancel | None:
        """Never raises; see http_connection.Answer."""
        try:
            if not self._access.allows(request.headers.get("authorization")):
                raise RequestError(Reason.UNAUTHENTICATED, "the token is missing or wrong")
            if request.headers.get("content-encoding", "").lower() in _CANNOT_DECODE:
                done(HttpReply(415, (_json({"error": "compressed requests are not taken"}),)))
                return None
            if request.method == "POST":
                found = _INFER.fullmatch(request.path.partition("?")[0])
                if found is not None:
                    name, version = found.groups()
                    return http_inference.begin(
                        self._service, request, unquote(name), unquote(version or ""), done
                    )
        except Exception as error:
            done(failure(request, error))
            return None
        task = asyncio.ensure_future(self._answer(request, done))
        return task.cancel

    async def _answer(self, request: HttpRequest, done: Done) -> None:
        try:
            reply = await self._route(request)
        except Exception as error:
            reply = failure(request, error)
        done(reply)

    async def _route(self, request: HttpRequest) -> HttpReply:
        path = request.path.partition("?")[0]
        method = "GET" if request.method == "HEAD" else request.method
        allowed = []
        for wanted, pattern, call in self._routes:
            found = pattern.fullmatch(path)
            if found is None:
                continue
            if wanted == method and call is not None:
                names = {key: unquote(value or "") for key, value in found.groupdict().items()}
                return await call(request, **names)
            allowed.append(wanted)
        if allowed:
            error = _json({"error": f"{request.method[:20]} is not allowed here"})
            return HttpReply(405, (error,), headers=(("allow", ", ".join(allowed)),))
        return HttpReply(404, (_json({"error": f"there is no {path[:80]}"}),))

    # ---- health and metadata -------------------------------------------------------------------

    async def _live(self, request: HttpRequest) -> HttpReply:
        return _reply({"live": True})

    async def _ready(self, request: HttpRequest) -> HttpReply:
        is_ready = self._repository.is_ready()
        # The protocol's text calls this one "live", too.
        body = _json({"live": is_ready, "ready": is_ready})
        return HttpReply(200 if is_ready else 503, (body,))

    async def _model_ready(self, request: HttpRequest, name: str, version: str) -> HttpReply:
        try:
            self._repository.find(name, version)
        except RequestError as fault:
            body = {"name": name, "ready": False, "error": str(fault)}
            return HttpReply(fault.reason.http_status, (_json(body),))
        return _reply({"name": name, "ready": True})

    async def _metadata(self, request: HttpRequest) -> HttpReply:
        return _reply({"name": NAME, "version": VERSION, "extensions": EXTENSIONS})

    async def _model_metadata(self, request: HttpRequest, name: str, version: str) -> HttpReply:
        model = self._repository.find(name, version).model
        return _reply(
            {
                "name": model.name,
                "versions": self._repository.versions(name),
                "platform": model.config.platform,
                "inputs": [_spec(one) for one in model.config.inputs],
                "outputs": [_spec(one) for one in model.config.outputs],
            }
        )

    # ---- Triton's repository -------------------------------------------------------------------

    async def _index(self, request: HttpRequest) -> HttpReply:
        asked = _object(request)
        found = self._repository.index(only_ready=asked.get("ready") is True)
        return _reply([one._asdict() for one in found])

    async def _load(self, request: HttpRequest, name: str) -> HttpReply:
        parameters = _object(request).get("parameters", {})
        if not isinstance(parameters, dict) or set(parameters) - {"config"}:
            raise bad_request("the one parameter of a load is config")
        config = parameters.get("config")
        if config is not None and not isinstance(config, str):
            raise bad_request("the parameter config is no string")
        await self._repository.load(name, config)
        return _reply({})

    async def _unload(self, request: HttpRequest, name: str) -> HttpReply:
        await self._repository.unload(name)
        return _reply({})


def _object(request: HttpRequest) -> dict[str, Any]:
    """The JSON object of a body, which may be empty."""
    return http_inference.json_object(request.body) if len(request.body) else {}


def _spec(one: TensorSpec) -> dict[str, object]:
    return {"name": one.name, "datatype": one.datatype, "shape": one.shape}


def _json(document: object) -> bytes:
    return json.dumps(document).encode()


def _reply(document: object) -> HttpReply:
    return HttpReply(200, (_json(document),))
