"""The server as a whole: it loads the models, listens, and on SIGTERM answers what it has."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from opscope.errors import OpscopeError
from opscope.serving.access import Access, is_loopback
from opscope.serving.grpc_server import GrpcServer
from opscope.serving.http_server import HttpServer
from opscope.serving.limits import Limits
from opscope.serving.repository import Repository, Source
from opscope.serving.service import Service


@dataclass(frozen=True)
class Options:
    """The server's settings."""

    sources: Sequence[Source]
    grpc: str | None = "127.0.0.1:8001"
    http: str | None = "127.0.0.1:8000"
    """HOST:PORT; None: not at all."""
    limits: Limits = field(default_factory=Limits)
    access: Access = field(default_factory=Access)


class ModelServer:
    """A running server, on the running event loop."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self.repository = Repository(options.sources)
        self.service = Service(self.repository, options.limits)
        self.grpc: GrpcServer | None = None
        self.http: HttpServer | None = None

    async def start(self) -> None:
        """Loads all models, then listens. Raises OpscopeError."""
        options = self._options
        await self.repository.load_all()
        if options.grpc is not None:
            self.grpc = GrpcServer(self.service, options.access, options.grpc)
            await self.grpc.start()
        if options.http is not None:
            self.http = HttpServer(self.service, options.access, options.http)
            await self.http.start()

    async def stop(self) -> None:
        """Drains: says that it is not ready, refuses new requests, answers all others."""
        limit_s = self._options.limits.drain_s
        if self.grpc is not None:
            await self.grpc.set_ready(False)
        try:
            await asyncio.wait_for(self.repository.drain(), limit_s)
        except (TimeoutError, asyncio.TimeoutError):
            pass
        # Answers are on their way to the sockets now.
        for server in (self.grpc, self.http):
            if server is not None:
                await server.stop(limit_s)

    def addresses(self) -> list[str]:
        """What it listens on, as lines for people."""
        return [
            f"{name} {server.address}"
            for name, server in (("gRPC", self.grpc), ("HTTP", self.http))
            if server is not None
        ]


def serve(options: Options, say: Callable[[str], None]) -> None:
    """Runs a server until SIGTERM or SIGINT. Raises OpscopeError if it cannot start."""
    for address in (options.grpc, options.http):
        host = (address or "").rpartition(":")[0].removeprefix("[").removesuffix("]")
        if address is not None and not is_loopback(host) and not options.access.tokens:
            say(f"warning: everybody who reaches {address} can call: no --token-file")
    run(_serve(options, say))


def run(main: Coroutine[Any, Any, None]) -> None:
    """Like asyncio.run; on uvloop if it is installed, whose loop is C."""
    if find_spec("uvloop"):
        import uvloop

        uvloop.run(main)
    else:
        asyncio.run(main)


async def _serve(options: Options, say: Callable[[str], None]) -> None:
    server = ModelServer(options)
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    try:
        await server.start()
    except OpscopeError:
        await server.stop()
        raise
    # What is there now stays: later collections pass over it, and take microseconds.
    gc.collect()
    gc.freeze()
    say("serving " + ", ".join(server.addresses()))
    await stopped.wait()
    say("draining")
    await server.stop()
