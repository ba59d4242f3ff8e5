"""The protocol over HTTP: Triton's own client, JSON, and clients that break the rules."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tritonclient import http as triton
from tritonclient.utils import InferenceServerException

from tests.serving.running import Running

# Triton's client closes its connections a second time when it is freed, in gevent, which may fail.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <function InferenceServerClient.__del__"
    ":pytest.PytestUnraisableExceptionWarning"
)

X = np.arange(8, dtype=np.float32).reshape(2, 4)


@pytest.fixture
def client(server: Running) -> Iterator[Any]:
    with triton.InferenceServerClient(server.http) as found:
        yield found


def tensor(name: str, values: Any, datatype: str, *, binary: bool = True) -> Any:
    made = triton.InferInput(name, list(values.shape), datatype)
    made.set_data_from_numpy(values, binary_data=binary)
    return made


def ask(
    server: Running, method: str, path: str, body: Any = None, **headers: str
) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(server.http, timeout=60)
    try:
        data = json.dumps(body) if isinstance(body, dict) else body
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, data, names)
        reply = connection.getresponse()
        content = reply.read()
        is_json = reply.headers["content-type"] == "application/json"
        return reply.status, json.loads(content) if is_json else content
    finally:
        connection.close()


def x_input(**fields: Any) -> dict[str, Any]:
    return {"name": "x", "datatype": "FP32", "shape": [2, 4], **fields}


@pytest.mark.parametrize("binary_in", [True, False])
@pytest.mark.parametrize("binary_out", [True, False])
def test_tritons_client_infers(client: Any, binary_in: bool, binary_out: bool) -> None:
    outputs = [triton.InferRequestedOutput("y", binary_data=binary_out)]
    found = client.infer(
        "double",
        [tensor("x", X, "FP32", binary=binary_in)],
        "1",
        outputs=outputs,
        request_id="r1",
    )
    np.testing.assert_array_equal(found.as_numpy("y"), 2 * X)
    assert found.get_response()["id"] == "r1"
    assert found.get_response()["model_version"] == "1"


def test_tritons_client_sees_health_and_metadata_and_rules_the_repository(client: Any) -> None:
    assert client.is_server_live()
    assert client.is_server_ready()
    assert client.is_model_ready("double", "2")
    assert not client.is_model_ready("double", "3")
    assert "binary_tensor_data" in client.get_server_metadata()["extensions"]
    assert client.get_model_metadata("double")["inputs"] == [
        {"name": "x", "datatype": "FP32", "shape": [-1, 4]}
    ]
    client.unload_model("table")
    states = {
        (one["name"], one["version"]): one["state"] for one in client.get_model_repository_index()
    }
    assert states["table", "1"] == "UNAVAILABLE"
    with pytest.raises(InferenceServerException, match="not loaded"):
        client.infer("table", [tensor("ids", np.array([[1, 2]], np.int64), "INT64")])
    client.load_model("table")
    found = client.infer("table", [tensor("ids", np.array([[1, 2]], np.int64), "INT64")])
    assert found.as_numpy("rows")[0, 0].tolist() == [1.0, 1.25, 1.5]


def test_json_is_enough_and_nested_lists_are_too(server: Running) -> None:
    for data in (X.ravel().tolist(), X.tolist()):
        status, found = ask(
            server, "POST", "/v2/models/double/infer", {"inputs": [x_input(data=data)]}
        )
        assert status == 200
        assert found["outputs"] == [
            {"name": "y", "datatype": "FP32", "shape": [2, 4], "data": (3 * X).ravel().tolist()}
        ]
        assert found["model_version"] == "2"


def test_a_request_of_bytes_alone_is_one_row(server: Running) -> None:
    status, found = ask(
        server,
        "POST",
        "/v2/models/double/versions/1/infer",
        X[0].tobytes(),
        Inference_Header_Content_Length="0",
    )
    assert status == 200
    assert found.endswith((2 * X[0]).tobytes())


def test_a_chunked_request_is_taken(server: Running) -> None:
    body = json.dumps({"inputs": [x_input(data=X.ravel().tolist())]}).encode()
    connection = http.client.HTTPConnection(server.http, timeout=60)
    for _ in "ab":  # the connection goes on after it
        connection.request("POST", "/v2/models/double/infer", iter([body[:10], body[10:]]))
        reply = connection.getresponse()
        assert reply.status == 200
        assert json.loads(reply.read())["outputs"][0]["data"][7] == 21.0
    connection.close()


def test_bad_requests_are_refused_with_their_reason(server: Running) -> None:
    data = X.ravel().tolist()
    deep = b'{"inputs": ' + b"[" * 100_000
    for body, text in (
        ({}, "inputs"),
        ({"inputs": [{}]}, "no name"),
        ({"inputs": [x_input()]}, "a list"),
        ({"inputs": [x_input(data=data[1:])]}, "needs 8 elements, but 7"),
        ({"inputs": [x_input(data=[*data[1:], "a"])]}, "FP32"),
        ({"inputs": [x_input(data=[*data[1:], True])]}, "bool"),
        ({"inputs": [x_input(data=[data, 1])]}, "unequal depths"),
        ({"inputs": [x_input(data=data, shape=[2, 4.0])]}, "no shape"),
        ({"inputs": [x_input(data=data, shape=[2, True])]}, "no shape"),
        ({"inputs": [x_input(data=data), x_input(data=data)]}, "one name"),
        ({"inputs": [x_input(data=data)], "id": 3}, "id"),
        ({"inputs": [x_input(data=data)], "outputs": [{"name": "z"}]}, "no output"),
        ({"inputs": [x_input(data=data)], "parameters": {"timeout": -1}}, "timeout"),
        ({"inputs": [x_input(parameters={"binary_data_size": 32})]}, "binary_data_size"),
        (b"{", "no JSON"),
        (b"[]", "no JSON object"),
        (b"\xff", "no JSON"),
        (deep, "JSON"),
        (b'{"inputs": [' + b"1" * 5000 + b"]}", "JSON"),
    ):
        status, found = ask(server, "POST", "/v2/models/double/infer", body)
        assert (status, list(found)) == (400, ["error"]), body
        assert text in found["error"], found
    wrong = {"Inference_Header_Content_Length": "99999"}
    status, found = ask(server, "POST", "/v2/models/double/infer", b"{}", **wrong)
    assert (status, "99999" in found["error"]) == (400, True)
    assert ask(server, "POST", "/v2/models/other/infer", b"{}")[0] == 404
    assert ask(server, "GET", "/v2/nothing")[0] == 404
    assert ask(server, "GET", "/v2/models/double/infer")[0] == 405
    assert ask(server, "POST", "/v2/models/double/infer", b"", content_encoding="gzip")[0] == 415


def test_bytes_that_belong_to_no_input_are_refused(server: Running) -> None:
    head = json.dumps({"inputs": [x_input(parameters={"binary_data_size": 32})]}).encode()
    status, found = ask(
        server,
        "POST",
        "/v2/models/double/infer",
        head + X.tobytes() + b"more",
        Inference_Header_Content_Length=str(len(head)),
    )
    assert (status, "4 bytes after the JSON" in found["error"]) == (400, True)


def test_pipelined_requests_are_answered_in_order(server: Running) -> None:
    host, port = server.http.split(":")
    with socket.create_connection((host, int(port)), timeout=60) as sock:
        sock.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n" * 3)
        sock.sendall(b"GET /v2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        found = b"".join(iter(lambda: sock.recv(65536), b""))
    assert found.count(b'{"live": true}') == 3
    assert found.endswith(b"}")
    assert b'"name": "opscope"' in found.rpartition(b"HTTP/1.1")[2]


def test_what_follows_a_chunked_request_at_once_is_not_answered(server: Running) -> None:
    """The parser does not say where it began; and trailers change no header."""
    host, port = server.http.split(":")
    head = b"POST /v2/models/double/infer HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    body = json.dumps({"inputs": [x_input(data=X.ravel().tolist())]}).encode()
    chunk = f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\nContent-Encoding: gzip\r\n\r\n"
    for more in (b"GET /v2 HTTP/1.1\r\nHost: a\r\n\r\n", b"POST /v2", b"\0garbage"):
        with socket.create_connection((host, int(port)), timeout=60) as sock:
            sock.sendall(head + chunk + more)
            found = b"".join(iter(lambda sock=sock: sock.recv(65536), b""))  # type: ignore[misc]
        assert found.startswith(b"HTTP/1.1 200")
        assert found.count(b"HTTP/1.1") == 1
        assert b"connection: close" in found


def test_a_client_may_ask_before_it_sends_and_may_offer_another_protocol(server: Running) -> None:
    host, port = server.http.split(":")
    body = json.dumps({"inputs": [x_input(data=X.ravel().tolist())]}).encode()
    head = f"POST /v2/models/double/infer HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n"
    for more in ("Expect: 100-continue", "Connection: Upgrade\r\nUpgrade: h2c"):
        with socket.create_connection((host, int(port)), timeout=60) as sock:
            sock.sendall(f"{head}{more}\r\n\r\n".encode())
            if "Expect" in more:
                assert sock.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
            sock.sendall(body)
            assert sock.recv(100).startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize(
    "data",
    [
        b"garbage\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64) + b"\r\n\r\n",
        b"POST /v2 HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        b"POST /v2 HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /v2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"GET /v2 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET /v2 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"GET /v2 HTTP/1.1\r\n\r\n",
        b"GET /v2 HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /v2 HTTP/1.1\nHost: a\n\nGET /v2 HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /v2 HTTP/2.0\r\nHost: a\r\n\r\n",
        b"\r\n\r\n",
        b"GET /v2 HTTP/1.1\r\n" + b"x" * 20_000,
    ],
)
def test_what_is_no_request_gets_one_answer_and_the_end(server: Running, data: bytes) -> None:
    host, port = server.http.split(":")
    with socket.create_connection((host, int(port)), timeout=60) as sock:
        sock.sendall(data)
        found = b"".join(iter(lambda: sock.recv(65536), b""))
    assert found.startswith((b"HTTP/1.1 400", b"HTTP/1.1 431"))
    assert found.count(b"HTTP/1.1 4") == 1
    assert ask(server, "GET", "/v2/health/live")[0] == 200
