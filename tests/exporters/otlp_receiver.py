"""An OTLP receiver over HTTP or gRPC with configurable answers, which keeps all requests."""

import gzip
import ssl
import threading
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import grpc
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs_service
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2_grpc as logs_stubs
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as service
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2_grpc as stubs
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as trace_service
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as trace_stubs

Request = service.ExportMetricsServiceRequest
Response = service.ExportMetricsServiceResponse
TraceRequest = trace_service.ExportTraceServiceRequest
TraceResponse = trace_service.ExportTraceServiceResponse
LogsRequest = logs_service.ExportLogsServiceRequest
LogsResponse = logs_service.ExportLogsServiceResponse
TRACES_PATH = "/v1/traces"
LOGS_PATH = "/v1/logs"
_BY_NUMBER = {code.value[0]: code for code in grpc.StatusCode}


class Received:
    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.headers: list[dict[str, str]] = []
        self.statuses: list[int] = []
        """To answer with, one after another; 200 when there is none left."""
        self.retry_after = ""
        self.retry_info = b""
        """Over gRPC, beside a status."""
        self.partial_success = 0
        """Points, spans or log records that each answer says were rejected."""
        self.go_on = threading.Event()
        """No answer is sent while it is not set."""
        self.go_on.set()
        self.endpoint = ""

    def response(self) -> Any:
        answer = Response()
        if self.partial_success:
            answer.partial_success.rejected_data_points = self.partial_success
            answer.partial_success.error_message = "too many labels"
        return answer

    def response_to_spans(self) -> Any:
        answer = TraceResponse()
        if self.partial_success:
            answer.partial_success.rejected_spans = self.partial_success
            answer.partial_success.error_message = "too old"
        return answer

    def response_to_logs(self) -> Any:
        answer = LogsResponse()
        if self.partial_success:
            answer.partial_success.rejected_log_records = self.partial_success
            answer.partial_success.error_message = "no room"
        return answer


@contextmanager
def over_http(certificate: tuple[str, str] | None = None) -> Iterator[Received]:
    """`certificate`: certificate and key, for TLS."""
    received = Received()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            received.go_on.wait(300)
            status = received.statuses.pop(0) if received.statuses else 200
            received.headers.append({key.lower(): value for key, value in self.headers.items()})
            answer = b""
            if status == 200:
                kinds: dict[str, tuple[Any, Any]] = {
                    TRACES_PATH: (TraceRequest, received.response_to_spans),
                    LOGS_PATH: (LogsRequest, received.response_to_logs),
                }
                kind, response = kinds.get(self.path, (Request, received.response))
                received.requests.append(kind.FromString(body))
                answer = response().SerializeToString()
            self.send_response(status)
            if received.retry_after:
                self.send_header("Retry-After", received.retry_after)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """Some tests have a client that gives up."""

    server = Server(("127.0.0.1", 0), Handler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    scheme = "https" if certificate else "http"
    received.endpoint = f"{scheme}://127.0.0.1:{server.server_address[1]}/v1/metrics"
    try:
        yield received
    finally:
        received.go_on.set()
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def over_grpc() -> Iterator[Received]:
    received = Received()

    def take(request: Any, context: Any) -> None:
        if received.statuses:
            if received.retry_info:
                context.set_trailing_metadata((("google.rpc.retryinfo-bin", received.retry_info),))
            status = received.statuses.pop(0)
            context.abort(_BY_NUMBER.get(status, grpc.StatusCode.UNAVAILABLE), str(status))
        received.requests.append(request)
        received.headers.append(dict(context.invocation_metadata()))

    class Servicer(stubs.MetricsServiceServicer):
        def Export(self, request: Any, context: Any) -> Any:  # noqa: N802 - the protocol's name
            take(request, context)
            return received.response()

    class LogsServicer(logs_stubs.LogsServiceServicer):
        def Export(self, request: Any, context: Any) -> Any:  # noqa: N802 - the protocol's name
            take(request, context)
            return received.response_to_logs()

    class TraceServicer(trace_stubs.TraceServiceServicer):
        def Export(self, request: Any, context: Any) -> Any:  # noqa: N802 - the protocol's name
            received.requests.append(request)
            return received.response_to_spans()

    server = grpc.server(futures.ThreadPoolExecutor(1))
    stubs.add_MetricsServiceServicer_to_server(Servicer(), server)  # type: ignore[no-untyped-call]
    trace_stubs.add_TraceServiceServicer_to_server(  # type: ignore[no-untyped-call]
        TraceServicer(), server
    )
    logs_stubs.add_LogsServiceServicer_to_server(LogsServicer(), server)  # type: ignore[no-untyped-call]
    received.endpoint = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield received
    finally:
        server.stop(None).wait()


def points(request: Any) -> dict[tuple[str, str], list[Any]]:
    """All points by service (of the resource) and metric."""
    found: dict[tuple[str, str], list[Any]] = {}
    for resource in request.resource_metrics:
        attributes = {one.key: one.value.string_value for one in resource.resource.attributes}
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                data = getattr(metric, metric.WhichOneof("data"))
                key = attributes["service.name"], metric.name
                found.setdefault(key, []).extend(data.data_points)
    return found


def spans(requests: list[Any]) -> list[tuple[dict[str, Any], Any]]:
    """Each span, with the attributes of its resource."""
    return [
        (attributes(resource.resource), span)
        for request in requests
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def log_records(requests: list[Any]) -> list[tuple[Any, Any, Any]]:
    """Each log record, with its resource and its scope."""
    return [
        (resource, scope, record)
        for request in requests
        for resource in request.resource_logs
        for scope in resource.scope_logs
        for record in scope.log_records
    ]


def attributes(owner: Any) -> dict[str, Any]:
    """The attributes of a resource, a span or a point, as Python values."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in owner.attributes}
