"""The HTTP server: connections on an address."""

from __future__ import annotations

import asyncio

from opscope.errors import OpscopeError
from opscope.serving.access import Access
from opscope.serving.http_calls import HttpCalls
from opscope.serving.http_connection import READ_BYTES, HttpConnection
from opscope.serving.service import Service


class HttpServer:
    """Listens from `start` to `stop`, on the running event loop."""

    def __init__(self, service: Service, access: Access, address: str) -> None:
        """`address`: HOST:PORT; port 0: any."""
        self._service = service
        self._access = access
        self.address = address
        self._connections: set[HttpConnection] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Raises OpscopeError if the address is taken."""
        calls = HttpCalls(self._service, self._access)
        host, _, port = self.address.rpartition(":")
        read = bytearray(READ_BYTES)
        try:
            self._server = await asyncio.get_running_loop().create_server(
                lambda: HttpConnection(
                    calls.answer, self._service.http_admission, self._connections, read
                ),
                host.removeprefix("[").removesuffix("]"),
                int(port),
                ssl=self._access.ssl_context(),
                backlog=1024,
            )
        except OSError as error:
            raise OpscopeError(f"cannot listen on {self.address}: {error.strerror}") from None
        self.address = f"{host}:{self._server.sockets[0].getsockname()[1]}"

    async def stop(self, grace_s: float) -> None:
        """Takes no more connections, and gives the requests that run some time."""
        if self._server is None:
            return
        self._server.close()
        for one in list(self._connections):
            one.finish()
        deadline = asyncio.get_running_loop().time() + grace_s
        while self._connections and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(0.01)
        for one in list(self._connections):
            one.abort()
