"""What the protocol's text and Triton's binary extension ask for, beyond what other files show.

PROTOCOL.md beside the server lists each requirement with its test.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from opscope import tensor as ot
from opscope.serving.model_config import describe
from opscope.serving.protocol import REPLIES, REQUESTS, SERVICE
from opscope.tensor import jit
from tests.serving.running import Running, running, source
from tests.serving.test_http import ask

INFER = "/v2/models/{}/infer"


def save(path: Path, model: Callable[..., Any], *examples: Any, names: tuple[str, ...]) -> Path:
    traced = jit.trace(model, *examples)
    config = describe(traced, list(examples), input_names=names)
    jit.save(traced, path, extra_files={"serving.json": config.to_json()})
    return path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """`scalars`: FP32 () and INT64 () to their product and the second; `half`, `brain`: FP16 and
    BF16 (2), doubled; `nothing`: FP32 (0, 3), doubled; `flags`: BOOL (2) and UINT8 (2), swapped."""
    folder = tmp_path_factory.mktemp("models")

    def scalars(x: Any, n: Any) -> Any:
        return x * n, n * 1

    def double(x: Any) -> Any:
        return x + x

    def double_short(x: Any) -> Any:
        return (x.to(ot.float32) * 2.0).to(x.dtype)

    def swap(x: Any, y: Any) -> Any:
        return y * 1, x.logical_not()

    scalar = ot.tensor(2.0), ot.tensor(3)
    halves = ot.ones(2, dtype=ot.float16), ot.ones(2, dtype=ot.bfloat16)
    flags = ot.tensor([True, False]), ot.tensor([1, 2], dtype=ot.uint8)
    with running(
        source("scalars", save(folder / "s.pt", scalars, *scalar, names=("x", "n"))),
        source("half", save(folder / "h.pt", double_short, halves[0], names=("x",))),
        source("brain", save(folder / "b.pt", double_short, halves[1], names=("x",))),
        source("nothing", save(folder / "n.pt", double, ot.ones(0, 3), names=("x",))),
        source("flags", save(folder / "f.pt", swap, *flags, names=("x", "y"))),
    ) as found:
        yield found


@pytest.fixture
def infer(server: Running) -> Iterator[Callable[..., Any]]:
    """Sends a ModelInferRequest with raw inputs of name, datatype, shape and bytes."""
    with grpc.insecure_channel(server.grpc) as channel:
        call: Any = channel.unary_unary(f"/{SERVICE}/ModelInfer")

        def send(model: str, *inputs: tuple[str, str, list[int], bytes], **fields: Any) -> Any:
            raw = [one[3] for one in inputs]
            made = REQUESTS["ModelInfer"](model_name=model, raw_input_contents=raw, **fields)
            for name, datatype, shape, _ in inputs:
                made.inputs.add(name=name, datatype=datatype, shape=shape)
            return REPLIES["ModelInfer"].FromString(call(made.SerializeToString(), timeout=60))

        yield send


def scalar_inputs(x: Any = 2.5, n: Any = 3) -> list[dict[str, Any]]:
    return [
        {"name": "x", "datatype": "FP32", "shape": [], "data": [x]},
        {"name": "n", "datatype": "INT64", "shape": [], "data": [n]},
    ]


def binary(*inputs: tuple[str, str, list[int], bytes], **fields: Any) -> tuple[bytes, str]:
    """A body in the binary extension, and the length of its JSON."""
    described = [
        {
            "name": name,
            "datatype": datatype,
            "shape": shape,
            "parameters": {"binary_data_size": len(raw)},
        }
        for name, datatype, shape, raw in inputs
    ]
    head = json.dumps({"inputs": described, **fields}).encode()
    return head + b"".join(raw for *_, raw in inputs), str(len(head))


def split(body: bytes) -> tuple[dict[str, Any], bytes]:
    """The JSON of an answer, and the bytes after it."""
    text = body.decode("latin-1")
    document, end = json.JSONDecoder().raw_decode(text)
    return document, body[end:]


def test_a_tensor_without_dimensions_is_one_element(
    server: Running, infer: Callable[..., Any]
) -> None:
    status, found = ask(server, "POST", INFER.format("scalars"), {"inputs": scalar_inputs()})
    assert status == 200
    assert [(one["shape"], one["data"]) for one in found["outputs"]] == [([], [7.5]), ([], [3])]
    x, n = np.float32(2.5).tobytes(), np.int64(3).tobytes()
    reply = infer("scalars", ("x", "FP32", [], x), ("n", "INT64", [], n))
    assert list(reply.outputs[0].shape) == []
    assert list(reply.raw_output_contents) == [np.float32(7.5).tobytes(), n]


def test_a_tensor_without_elements_is_taken_and_given(
    server: Running, infer: Callable[..., Any]
) -> None:
    empty = {"name": "x", "datatype": "FP32", "shape": [0, 3], "data": []}
    status, found = ask(server, "POST", INFER.format("nothing"), {"inputs": [empty]})
    assert (status, found["outputs"][0]["shape"], found["outputs"][0]["data"]) == (200, [0, 3], [])
    reply = infer("nothing", ("x", "FP32", [0, 3], b""))
    assert (list(reply.outputs[0].shape), list(reply.raw_output_contents)) == ([0, 3], [b""])
    body, length = binary(("x", "FP32", [0, 3], b""), parameters={"binary_data_output": True})
    _, content = ask(
        server, "POST", INFER.format("nothing"), body, Inference_Header_Content_Length=length
    )
    document, rest = split(content)
    assert document["outputs"][0]["parameters"] == {"binary_data_size": 0}
    assert rest == b""


def test_short_floats_are_bytes_in_both_protocols(
    server: Running, infer: Callable[..., Any]
) -> None:
    fp16 = np.array([1.5, -2.0], np.float16).tobytes()
    bf16 = bytes.fromhex("c03f00c0")  # 1.5, -2
    for model, datatype, given, doubled in (
        ("half", "FP16", fp16, np.array([3.0, -4.0], np.float16).tobytes()),
        ("brain", "BF16", bf16, bytes.fromhex("404080c0")),
    ):
        reply = infer(model, ("x", datatype, [2], given))
        assert list(reply.raw_output_contents) == [doubled]
        body, length = binary(("x", datatype, [2], given), parameters={"binary_data_output": True})
        for _ in "ab":  # the second time its head is known
            _, content = ask(
                server, "POST", INFER.format(model), body, Inference_Header_Content_Length=length
            )
            assert split(content)[1] == doubled
        x = {"name": "x", "datatype": datatype, "shape": [2], "data": [1.5, -2.0]}
        status, found = ask(server, "POST", INFER.format(model), {"inputs": [x]})
        assert (status, "raw bytes only" in found["error"]) == (400, True)
        body, length = binary(("x", datatype, [2], given))
        status, found = ask(
            server, "POST", INFER.format(model), body, Inference_Header_Content_Length=length
        )
        assert (status, "binary_data" in found["error"]) == (400, True)


def test_numbers_that_json_lacks_are_sent_as_bytes_only(server: Running) -> None:
    request: dict[str, Any] = {"inputs": scalar_inputs(3e38, 3)}
    status, found = ask(server, "POST", INFER.format("scalars"), request)
    assert (status, "binary_data" in found["error"]) == (500, True)
    request["parameters"] = {"binary_data_output": True}
    status, content = ask(server, "POST", INFER.format("scalars"), request)
    assert (status, split(content)[1]) == (200, np.float32(np.inf).tobytes() + bytes([3, *[0] * 7]))


def test_datatypes_that_no_model_takes_are_named(
    server: Running, infer: Callable[..., Any]
) -> None:
    x, n = scalar_inputs()
    for datatype in ("BYTES", "UINT16", "UINT32", "UINT64", "INT8", "INT16"):
        inputs = {"inputs": [{**x, "datatype": datatype}, n]}
        status, found = ask(server, "POST", INFER.format("scalars"), inputs)
        assert (status, datatype in found["error"]) == (400, True)
        with pytest.raises(grpc.RpcError, match="INVALID_ARGUMENT"):
            infer("scalars", ("x", datatype, [1], b"\0\0\0\0"))
    status, found = ask(
        server, "POST", INFER.format("scalars"), {"inputs": [{**x, "datatype": "FLOAT"}, n]}
    )
    assert (status, "FLOAT" in found["error"]) == (400, True)


def test_outputs_that_are_an_empty_list_are_all_of_them(
    server: Running, infer: Callable[..., Any]
) -> None:
    request = {"inputs": scalar_inputs(), "outputs": []}
    _, found = ask(server, "POST", INFER.format("scalars"), request)
    assert [one["name"] for one in found["outputs"]] == ["output0", "output1"]
    request = {"inputs": scalar_inputs(), "outputs": [{"name": "output1"}]}
    _, found = ask(server, "POST", INFER.format("scalars"), request)
    assert [one["name"] for one in found["outputs"]] == ["output1"]


def test_the_identifier_and_the_model_come_back(server: Running, infer: Callable[..., Any]) -> None:
    for identity in ("42", "a/b", "ä"):
        _, found = ask(
            server, "POST", INFER.format("scalars"), {"inputs": scalar_inputs(), "id": identity}
        )
        assert (found["id"], found["model_name"], found["model_version"]) == (
            identity,
            "scalars",
            "1",
        )
        reply = infer("half", ("x", "FP16", [2], bytes(4)), id=identity)
        assert (reply.id, reply.model_name, reply.model_version) == (identity, "half", "1")
    _, found = ask(server, "POST", INFER.format("scalars"), {"inputs": scalar_inputs()})
    assert "id" not in found


def test_parameters_may_be_strings_numbers_and_booleans(server: Running) -> None:
    parameters = {"a": "text", "b": 1, "c": 2.5, "d": True}
    x, n = scalar_inputs()
    request = {
        "inputs": [{**x, "parameters": parameters}, n],
        "outputs": [{"name": "output0", "parameters": parameters}],
        "parameters": parameters,
    }
    assert ask(server, "POST", INFER.format("scalars"), request)[0] == 200
    wrong: Any
    for wrong in ([], "text", {"a": []}, {"a": {}}, {"a": None}):
        status, found = ask(
            server, "POST", INFER.format("scalars"), {**request, "parameters": wrong}
        )
        assert (status, "parameters" in found["error"]) == (400, True), wrong


def test_each_output_says_whether_it_wants_bytes(server: Running) -> None:
    inputs = ("x", "BOOL", [2], b"\1\0"), ("y", "UINT8", [2], b"\3\4")
    for outputs, parameters, sizes in (
        ([], {}, [None, None]),
        ([], {"binary_data_output": True}, [2, 2]),
        ([("output1", {})], {"binary_data_output": True}, [2]),
        ([("output1", {"binary_data": True}), ("output0", {})], {}, [2, None]),
        ([("output0", {"binary_data": False})], {"binary_data_output": True}, [None]),
    ):
        wanted = [{"name": name, "parameters": said} for name, said in outputs]
        body, length = binary(*inputs, outputs=wanted, parameters=parameters)
        for _ in "ab":
            _, content = ask(
                server, "POST", INFER.format("flags"), body, Inference_Header_Content_Length=length
            )
            document, rest = split(content) if isinstance(content, bytes) else (content, b"")
            found = document["outputs"]
            assert [one.get("parameters", {}).get("binary_data_size") for one in found] == sizes
            assert [one["name"] for one in found] == (
                [name for name, _ in outputs] or ["output0", "output1"]
            )
            right = {"output0": [3, 4], "output1": [False, True]}
            for one in found:
                if "parameters" in one:
                    assert "data" not in one
                    assert list(rest[:2]) == right[one["name"]]
                    rest = rest[2:]
                else:
                    assert one["data"] == right[one["name"]]
            assert rest == b""


def test_a_known_head_is_checked_against_the_bytes_that_come_with_it(
    server: Running, infer: Callable[..., Any]
) -> None:
    for x, y in ((b"\1\0", b"\3\4"), (b"\0\0", b"\5\6")):
        reply = infer("flags", ("x", "BOOL", [2], x), ("y", "UINT8", [2], y))
        assert list(reply.raw_output_contents) == [y, bytes(1 - one for one in x)]
    for x, y in ((b"\2\0", b"\3\4"), (b"\1", b"\3\4"), (b"\1\0", b"\3\4\5")):
        with pytest.raises(grpc.RpcError, match="INVALID_ARGUMENT"):
            infer("flags", ("x", "BOOL", [2], x), ("y", "UINT8", [2], y))
    body, length = binary(("x", "BOOL", [2], b"\1\0"), ("y", "UINT8", [2], b"\3\4"))
    lengths = {"Inference_Header_Content_Length": length}
    path = INFER.format("flags")
    assert ask(server, "POST", path, body, **lengths)[0] == 200
    for wrong in (body + b"\0", body[:-1], body[:-4] + b"\2\0\3\4"):
        status, found = ask(server, "POST", path, wrong, **lengths)
        assert (status, list(found)) == (400, ["error"])


def test_readiness_and_errors_are_the_objects_of_the_text(server: Running) -> None:
    assert ask(server, "GET", "/v2/health/live") == (200, {"live": True})
    # The text calls the server's readiness "live".
    assert ask(server, "GET", "/v2/health/ready") == (200, {"live": True, "ready": True})
    ready = {"name": "half", "ready": True}
    assert ask(server, "GET", "/v2/models/half/versions/1/ready") == (200, ready)
    for path in (
        "/v2/models/none",
        "/v2/models/half/versions/9",
        "/v2/models/half/versions/first",
        "/v2/models/half/versions/9/ready",
    ):
        status, found = ask(server, "GET", path)
        assert (status, type(found["error"])) == (404, str)
    status, found = ask(server, "GET", "/v2/models/scalars/versions/1")
    assert found == {
        "name": "scalars",
        "versions": ["1"],
        "platform": "opscope_graph",
        "inputs": [
            {"name": "x", "datatype": "FP32", "shape": []},
            {"name": "n", "datatype": "INT64", "shape": []},
        ],
        "outputs": [
            {"name": "output0", "datatype": "FP32", "shape": []},
            {"name": "output1", "datatype": "INT64", "shape": []},
        ],
    }
