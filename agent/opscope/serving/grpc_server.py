"""The gRPC server: the protocol's service, gRPC's health service and reflection."""

from __future__ import annotations

from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2, reflection_pb2_grpc

from opscope.errors import OpscopeError
from opscope.serving import grpc_call, grpc_queue
from opscope.serving.access import Access
from opscope.serving.grpc_calls import Calls
from opscope.serving.protocol import POOL, SERVICE
from opscope.serving.service import Service

_DESCRIBED = (health_pb2.DESCRIPTOR, reflection_pb2.DESCRIPTOR)


class GrpcServer:
    """Listens from `start` to `stop`, on the running event loop."""

    def __init__(self, service: Service, access: Access, address: str) -> None:
        """`address`: HOST:PORT; port 0: any."""
        limits = service.limits
        self._health: Any = health.aio.HealthServicer()
        options = [
            ("grpc.max_receive_message_length", limits.message_bytes),
            ("grpc.max_send_message_length", -1),
            # Two servers on one port would share its requests.
            ("grpc.so_reuseport", 0),
            ("grpc.max_connection_idle_ms", int(1000 * limits.idle_s)),
            ("grpc.server_handshake_timeout_ms", int(1000 * limits.receive_s)),
            ("grpc.max_metadata_size", limits.head_bytes),
            # Finds clients that have vanished without a word.
            ("grpc.keepalive_time_ms", int(1000 * limits.receive_s)),
            ("grpc.keepalive_timeout_ms", int(1000 * limits.receive_s)),
            ("grpc.max_concurrent_streams", limits.requests),
        ]
        calls = Calls(service, access)
        self._server: Any
        if grpc_call.is_usable():
            self._server = grpc_queue.Server(options)
            self._server.add_direct(f"/{SERVICE}/ModelInfer", calls.infer)
        else:
            self._server = grpc.aio.server(options=options)
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE, calls.handlers()),)
        )
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        names = (SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME)
        for file in _DESCRIBED:
            POOL.AddSerializedFile(file.serialized_pb)
        described = reflection.aio.ReflectionServicer(names, pool=POOL)
        add: Any = reflection_pb2_grpc.add_ServerReflectionServicer_to_server
        add(described, self._server)
        host = address.rpartition(":")[0]
        try:
            if access.certificate is not None and access.key is not None:
                credentials = grpc.ssl_server_credentials([(access.key, access.certificate)])
                port = self._server.add_secure_port(address, credentials)
            else:
                port = self._server.add_insecure_port(address)
        except RuntimeError:
            raise OpscopeError(f"cannot listen on {address}") from None
        self.address = f"{host}:{port}"

    async def start(self) -> None:
        await self._server.start()
        await self.set_ready(True)

    async def set_ready(self, is_ready: bool) -> None:
        """What the health service says of the server and of its one service."""
        status = health_pb2.HealthCheckResponse
        value = status.SERVING if is_ready else status.NOT_SERVING
        for name in ("", SERVICE):
            await self._health.set(name, value)

    async def stop(self, grace_s: float) -> None:
        """Takes no more calls, and gives those that run some time."""
        await self._server.stop(grace_s)
