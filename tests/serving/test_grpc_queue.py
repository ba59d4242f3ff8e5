"""The server over grpcio's completion queue, and grpcio's own, which replaces it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)

from opscope.serving import grpc_call
from opscope.serving.access import Access
from opscope.serving.batcher import Rule
from opscope.serving.faults import Reason, RequestError
from opscope.serving.grpc_queue import Server
from opscope.serving.limits import Limits
from opscope.serving.protocol import REPLIES, REQUESTS, SERVICE
from tests.serving.running import Running, running, save_double, source
from tests.waiting import until

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
LONG_NS = 60_000_000_000


@pytest.fixture(params=[True, False], ids=["queue", "aio"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the servers of the test use the queue."""
    if not request.param:
        monkeypatch.setattr(grpc_call, "core", None)
    return bool(request.param)


@pytest.fixture
def server(kind: bool, tmp_path: Path) -> Iterator[Running]:
    """`double` answers at once; `waiting` only when 16 requests wait."""
    long = Rule(max_batch_size=16, max_queue_delay_ns=LONG_NS)
    with running(
        source("double", save_double(tmp_path / "double.pt")),
        source("waiting", save_double(tmp_path / "waiting.pt", rule=long)),
        limits=Limits(drain_s=0.2, message_bytes=1 << 20),
    ) as found:
        assert found.server.grpc is not None
        assert isinstance(found.server.grpc._server, Server) == kind
        yield found


@pytest.fixture
def channel(server: Running) -> Iterator[Any]:
    with grpc.insecure_channel(server.grpc) as found:
        yield found


def message(model: str = "double") -> bytes:
    made = REQUESTS["ModelInfer"](model_name=model, raw_input_contents=[bytes(16)])
    made.inputs.add(name="x", datatype="FP32", shape=[1, 4])
    return bytes(made.SerializeToString())


def infer(channel: Any) -> Any:
    return channel.unary_unary(f"/{SERVICE}/ModelInfer")


def check_that_it_answers(channel: Any) -> None:
    reply = REPLIES["ModelInfer"].FromString(infer(channel)(message(), timeout=60))
    assert reply.raw_output_contents[0] == bytes(16)


def status(failed: Any) -> tuple[str, str]:
    return failed.value.code().name, failed.value.details()


def test_this_version_of_grpcio_has_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    assert grpc_call.is_usable()
    for name in ("SendMessageOperation", "CompletionQueue", "Server"):
        with monkeypatch.context() as without:
            without.setattr(grpc_call.core, name, object)
            assert not grpc_call.is_usable()
    monkeypatch.setattr(grpc_call, "core", None)
    assert not grpc_call.is_usable()


def test_a_method_that_is_not_there_is_unimplemented(channel: Any) -> None:
    for path in (f"/{SERVICE}/Other", "/other.Service/Other", "/\xe9"):
        with pytest.raises(grpc.RpcError) as failed:
            channel.unary_unary(path)(b"", timeout=60)
        assert status(failed)[0] == "UNIMPLEMENTED"
    check_that_it_answers(channel)


@pytest.mark.parametrize("kind", [True], indirect=True)
def test_a_call_without_a_message_ends(channel: Any) -> None:
    """grpcio's own server leaves such a call open until its deadline."""
    for path in (f"/{SERVICE}/ModelInfer", f"/{SERVICE}/ServerLive"):
        made = channel.stream_unary(path)
        with pytest.raises(grpc.RpcError):
            made(iter([]), timeout=60)
    check_that_it_answers(channel)


def test_a_message_of_another_kind_ends_its_call_alone(channel: Any) -> None:
    with pytest.raises(grpc.RpcError) as failed:
        channel.unary_unary("/grpc.health.v1.Health/Check")(b"\xff\xff", timeout=60)
    assert status(failed)[0] in ("INTERNAL", "UNKNOWN")
    with pytest.raises(grpc.RpcError) as failed:
        infer(channel)(b"\xff\xff", timeout=60)
    assert status(failed)[0] == "INVALID_ARGUMENT"
    check_that_it_answers(channel)


def test_a_service_that_does_not_exist_is_not_found(channel: Any) -> None:
    health: Any = health_pb2_grpc.HealthStub(channel)
    with pytest.raises(grpc.RpcError) as failed:
        health.Check(health_pb2.HealthCheckRequest(service="other"), timeout=60)
    assert status(failed) == ("NOT_FOUND", "")


def test_the_health_service_tells_changes_to_those_who_watch(server: Running, channel: Any) -> None:
    health: Any = health_pb2_grpc.HealthStub(channel)
    watched = health.Watch(health_pb2.HealthCheckRequest(service=SERVICE), timeout=60)
    assert next(watched).status == SERVING
    grpc_server: Any = server.server.grpc
    server.call(grpc_server.set_ready(False))
    assert next(watched).status == NOT_SERVING
    watched.cancel()
    until(lambda: not grpc_server._health._server_watchers, "the server no longer watches")
    check_that_it_answers(channel)


def test_a_stream_of_questions_is_answered_in_order(channel: Any) -> None:
    database = ProtoReflectionDescriptorDatabase(channel)
    assert SERVICE in database.get_services()
    assert database.FindFileContainingSymbol(SERVICE).package == "inference"


def test_a_cancelled_request_leaves_the_queue(server: Running, channel: Any) -> None:
    executor = server.server.repository.find("waiting")
    waiting = infer(channel).future(message("waiting"), timeout=60)
    until(lambda: executor.in_flight == 1, "the request waits")
    waiting.cancel()
    until(lambda: executor.in_flight == 0, "the request has left")
    assert server.server.service.admission.requests == 0
    check_that_it_answers(channel)


def test_a_client_that_vanishes_leaves_nothing(server: Running) -> None:
    executor = server.server.repository.find("waiting")
    channel = grpc.insecure_channel(server.grpc)
    calls = [infer(channel).future(message("waiting"), timeout=60) for _ in range(5)]
    until(lambda: executor.in_flight == len(calls), "the requests wait")
    channel.close()
    until(lambda: executor.in_flight == 0, "the requests have left")
    assert server.server.service.admission.requests == 0


def test_a_request_past_its_deadline_leaves_the_queue(server: Running, channel: Any) -> None:
    with pytest.raises(grpc.RpcError) as failed:
        infer(channel)(message("waiting"), timeout=0.05)
    assert status(failed)[0] == "DEADLINE_EXCEEDED"
    executor = server.server.repository.find("waiting")
    until(lambda: executor.in_flight == 0, "the request has left")


def test_an_answer_that_cannot_be_made_is_a_failure_of_its_call(
    server: Running, channel: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(*parts: Any) -> bytes:
        raise RuntimeError("no reply")

    with monkeypatch.context() as changed:
        changed.setattr("opscope.serving.wire.join_reply", damaged)
        with pytest.raises(grpc.RpcError) as failed:
            infer(channel)(message(), timeout=60)
    assert status(failed) == ("INTERNAL", "the server failed")
    check_that_it_answers(channel)
    assert server.server.service.admission.requests == 0


def test_a_full_server_answers_at_once(
    server: Running, channel: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*parts: Any) -> Any:
        raise RequestError(Reason.OVERLOAD, "full")

    with monkeypatch.context() as changed:
        changed.setattr(server.server.service, "submit", full)
        with pytest.raises(grpc.RpcError) as failed:
            infer(channel)(message(), timeout=60)
    assert status(failed) == ("RESOURCE_EXHAUSTED", "full")


def test_many_clients_at_once_get_all_answers(server: Running) -> None:
    wrong: SimpleQueue[Exception] = SimpleQueue()

    def ask() -> None:
        try:
            with grpc.insecure_channel(
                server.grpc, options=[("grpc.use_local_subchannel_pool", 1)]
            ) as channel:
                calls = [infer(channel).future(message(), timeout=60) for _ in range(200)]
                for one in calls:
                    assert REPLIES["ModelInfer"].FromString(one.result()).raw_output_contents
        except Exception as error:
            wrong.put(error)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert wrong.empty(), wrong.get()


def test_a_server_that_stops_cancels_what_lasts_too_long(kind: bool, tmp_path: Path) -> None:
    """Both kinds of calls: those that wait for a batch, and streams."""
    long = Rule(max_batch_size=16, max_queue_delay_ns=LONG_NS)
    path = save_double(tmp_path / "waiting.pt", rule=long)
    limits = Limits(drain_s=0.05)
    with running(source("waiting", path), limits=limits) as server:
        channel = grpc.insecure_channel(server.grpc)
        health: Any = health_pb2_grpc.HealthStub(channel)
        watched = health.Watch(health_pb2.HealthCheckRequest(service=SERVICE), timeout=60)
        assert next(watched).status == SERVING
        waiting = infer(channel).future(message("waiting"), timeout=60)
        executor = server.server.repository.find("waiting")
        until(lambda: executor.in_flight == 1, "the request waits")
    assert waiting.exception(60) is not None
    with pytest.raises(grpc.RpcError):
        list(watched)
    channel.close()
    assert not [one for one in threading.enumerate() if one.name == "grpc"]


def test_tokens_are_asked_of_each_call(kind: bool, tmp_path: Path) -> None:
    path = save_double(tmp_path / "double.pt")
    with (
        running(source("double", path), access=Access(tokens=(b"right",))) as server,
        grpc.insecure_channel(server.grpc) as channel,
    ):
        for metadata in ((), (("authorization", "Bearer wrong"),)):
            with pytest.raises(grpc.RpcError) as failed:
                infer(channel)(message(), timeout=60, metadata=metadata)
            assert status(failed)[0] == "UNAUTHENTICATED"
        infer(channel)(message(), timeout=60, metadata=(("authorization", "Bearer right"),))
