"""The protocol over gRPC: Triton's own client, reflection's client, and the protocol's text."""

from __future__ import annotations

from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any

import grpc
import numpy as np
import pytest
from google.protobuf import descriptor_pool
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)
from tritonclient import grpc as triton
from tritonclient.utils import InferenceServerException

from opscope.serving.protocol import REPLIES, REQUESTS, SERVICE
from tests.serving.running import Running

X = np.arange(8, dtype=np.float32).reshape(2, 4)


@pytest.fixture
def client(server: Running) -> Iterator[Any]:
    with triton.InferenceServerClient(server.grpc) as found:
        yield found


@pytest.fixture
def channel(server: Running) -> Iterator[Any]:
    with grpc.insecure_channel(server.grpc) as found:
        yield found


def call(channel: Any, name: str, message: Any) -> Any:
    made = channel.unary_unary(f"/{SERVICE}/{name}")
    data = message if isinstance(message, bytes) else message.SerializeToString()
    return REPLIES[name].FromString(made(data, timeout=60))


def refused(channel: Any, message: Any) -> tuple[str, str]:
    with pytest.raises(grpc.RpcError) as caught:
        call(channel, "ModelInfer", message)
    error: Any = caught.value
    return error.code().name, error.details()


def tensor(name: str, values: Any, datatype: str) -> Any:
    made = triton.InferInput(name, list(values.shape), datatype)
    made.set_data_from_numpy(values)
    return made


def request(model: str = "double", **fields: Any) -> Any:
    made = REQUESTS["ModelInfer"](model_name=model, **fields)
    made.inputs.add(name="x", datatype="FP32", shape=[2, 4])
    return made


def test_tritons_client_sees_health_and_metadata(client: Any) -> None:
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("double")
    assert client.is_model_ready("double", "2")
    assert not client.is_model_ready("double", "3")
    assert not client.is_model_ready("other")
    found = client.get_server_metadata(as_json=True)
    assert found["name"] == "opscope"
    assert found["extensions"] == ["binary_tensor_data", "model_repository"]
    found = client.get_model_metadata("double", as_json=True)
    assert found == {
        "name": "double",
        "versions": ["1", "2"],
        "platform": "opscope_graph",
        "inputs": [{"name": "x", "datatype": "FP32", "shape": ["-1", "4"]}],
        "outputs": [{"name": "y", "datatype": "FP32", "shape": ["-1", "4"]}],
    }


def test_tritons_client_infers_with_the_highest_version_or_a_chosen_one(client: Any) -> None:
    for version, factor in (("", 3), ("1", 2), ("2", 3)):
        found = client.infer("double", [tensor("x", X, "FP32")], version, request_id="r1")
        np.testing.assert_array_equal(found.as_numpy("y"), factor * X)
        assert found.get_response().id == "r1"
        assert found.get_response().model_version == (version or "2")


def test_asynchronous_requests_get_their_own_answers(client: Any) -> None:
    answers: SimpleQueue[tuple[int, Any]] = SimpleQueue()
    for number in range(200):
        client.async_infer(
            "double",
            [tensor("x", X + number, "FP32")],
            lambda result, error, number=number: answers.put((number, error or result)),
            model_version="1",
        )
    for _ in range(200):
        number, answer = answers.get(timeout=60)
        np.testing.assert_array_equal(answer.as_numpy("y"), 2 * (X + number))


def test_chosen_outputs_are_sent_in_their_order(client: Any) -> None:
    outputs = [triton.InferRequestedOutput("y")]
    found = client.infer("double", [tensor("x", X, "FP32")], outputs=outputs)
    assert found.as_numpy("y").shape == (2, 4)
    with pytest.raises(InferenceServerException, match="no output 'z'"):
        client.infer("double", [tensor("x", X, "FP32")], outputs=[triton.InferRequestedOutput("z")])


def test_tritons_client_rules_the_repository(client: Any) -> None:
    index = client.get_model_repository_index(as_json=True)["models"]
    assert [(one["name"], one["version"], one["state"]) for one in index] == [
        ("double", "1", "READY"),
        ("double", "2", "READY"),
        ("table", "1", "READY"),
    ]
    client.unload_model("table")
    assert not client.is_model_ready("table")
    ids = np.array([[1, 2]], np.int64)
    with pytest.raises(InferenceServerException, match="UNAVAILABLE"):
        client.infer("table", [tensor("ids", ids, "INT64")])
    client.load_model("table")
    found = client.infer("table", [tensor("ids", ids, "INT64")]).as_numpy("rows")
    assert found[0, 1].tolist() == [2.0, 2.25, 2.5]
    with pytest.raises(InferenceServerException, match="NOT_FOUND"):
        client.load_model("other")


def test_contents_by_type_are_the_same_as_raw(channel: Any) -> None:
    typed = request(model_version="1")
    typed.inputs[0].contents.fp32_contents.extend(X.ravel().tolist())
    reply = call(channel, "ModelInfer", typed)
    assert len(reply.raw_output_contents) == 1
    assert not reply.outputs[0].HasField("contents")
    raw = request(model_version="1", raw_input_contents=[X.tobytes()])
    assert call(channel, "ModelInfer", raw) == reply
    assert reply.raw_output_contents[0] == (2 * X).tobytes()
    assert (reply.model_name, reply.model_version, reply.id) == ("double", "1", "")


def test_bad_requests_are_refused_with_their_reason(channel: Any) -> None:
    raw = X.tobytes()

    def changed(**fields: Any) -> Any:
        made = request(raw_input_contents=[raw])
        for name, value in fields.items():
            if name == "shape":
                made.inputs[0].ClearField("shape")
                made.inputs[0].shape.extend(value)
            else:
                setattr(made.inputs[0], name, value)
        return made

    both = request(raw_input_contents=[raw])
    both.inputs[0].contents.fp32_contents.append(1)
    wrong_field = request()
    wrong_field.inputs[0].contents.int_contents.extend(range(8))
    twice = request(raw_input_contents=[raw, raw])
    twice.inputs.add(name="x", datatype="FP32", shape=[2, 4])
    for message, text in (
        (both, "not both"),
        (wrong_field, "belong in fp32_contents"),
        (twice, "two inputs have one name"),
        (request(raw_input_contents=[raw, raw]), "2 raw_input_contents"),
        (request(raw_input_contents=[raw[:-1]]), "32 bytes as FP32, but 31"),
        (request(), "needs 8 elements, but 0"),
        (changed(datatype="FP31"), "no datatype"),
        (changed(datatype="BYTES"), "BYTES"),
        (changed(datatype="INT32"), "takes FP32"),
        (changed(shape=[4, 2]), "the model takes [-1, 4]"),
        (changed(shape=[-2, -4]), "no shape"),
        (changed(shape=[2**61, 4]), "bytes as FP32"),
        (changed(shape=[0, 4]), "bytes as FP32"),
        (changed(name="z"), "input 'x' is missing"),
        (b"\xff\xff\xff", "message"),
        (b"\x0a\x02\xff\xfe", "no ModelInferRequest"),
    ):
        code, details = refused(channel, message)
        assert code == "INVALID_ARGUMENT"
        assert text in details, details
    assert refused(channel, request("other"))[0] == "NOT_FOUND"
    assert refused(channel, request(model_version="9"))[0] == "NOT_FOUND"


def test_a_batch_beyond_the_models_is_refused(channel: Any) -> None:
    made = request(raw_input_contents=[bytes(17 * 16)])
    made.inputs[0].shape[0] = 17
    code, details = refused(channel, made)
    assert (code, "from 1 to 16" in details) == ("INVALID_ARGUMENT", True)


def test_reflection_describes_all_services(channel: Any) -> None:
    database = ProtoReflectionDescriptorDatabase(channel)
    assert {SERVICE, "grpc.health.v1.Health"} < set(database.get_services())
    pool = descriptor_pool.DescriptorPool(database)
    calls = [one.name for one in pool.FindServiceByName(SERVICE).methods]
    assert calls[:6] == [
        "ServerLive",
        "ServerReady",
        "ModelReady",
        "ServerMetadata",
        "ModelMetadata",
        "ModelInfer",
    ]
    assert pool.FindServiceByName("grpc.health.v1.Health").methods


def test_the_health_service_says_that_it_serves(channel: Any) -> None:
    health: Any = health_pb2_grpc.HealthStub(channel)
    for name in ("", SERVICE):
        found = health.Check(health_pb2.HealthCheckRequest(service=name), timeout=60)
        assert found.status == health_pb2.HealthCheckResponse.SERVING
