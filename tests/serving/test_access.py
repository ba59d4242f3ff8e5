"""TLS, tokens, limits, and the end by SIGTERM."""

from __future__ import annotations

import http.client
import json
import signal
import ssl
import subprocess
import sys
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest
from tritonclient import grpc as triton
from tritonclient.utils import InferenceServerException

from opscope.errors import OpscopeError
from opscope.serving import access
from opscope.serving.batcher import Rule
from opscope.serving.limits import Limits
from tests.serving.running import running, save_double, source, triton_client
from tests.waiting import until

X = np.ones((1, 4), np.float32)


def x_input(rows: int = 1) -> Any:
    made = triton.InferInput("x", [rows, 4], "FP32")
    made.set_data_from_numpy(np.ones((rows, 4), np.float32))
    return made


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("tls")
    files = str(folder / "cert.pem"), str(folder / "key.pem")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
    subprocess.run(
        [
            *command.split(),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
            *("-out", files[0], "-keyout", files[1]),
        ],
        check=True,
        capture_output=True,
    )
    return files


def test_both_protocols_ask_for_the_token_over_tls(
    tmp_path: Path, certificate: tuple[str, str]
) -> None:
    (tmp_path / "tokens").write_text("# for tests\nfirst\n\nsecond\n")
    rules = access.load(*certificate, str(tmp_path / "tokens"))
    with running(source("m", save_double(tmp_path / "m.pt")), access=rules) as server:
        port = server.grpc.rpartition(":")[2]
        with triton_client(
            f"localhost:{port}", ssl=True, root_certificates=certificate[0]
        ) as client:
            with pytest.raises(InferenceServerException, match="UNAUTHENTICATED"):
                client.infer("m", [x_input()])
            with pytest.raises(InferenceServerException, match="UNAUTHENTICATED"):
                client.infer("m", [x_input()], headers={"authorization": "Bearer third"})
            found = client.infer("m", [x_input()], headers={"authorization": "Bearer second"})
            assert found.as_numpy("y").tolist() == [[2.0] * 4]
        context = ssl.create_default_context(cafile=certificate[0])
        for token, status in (("first", 200), ("fir", 401), ("", 401)):
            connection = http.client.HTTPSConnection(
                f"localhost:{server.http.rpartition(':')[2]}", context=context, timeout=60
            )
            connection.request("GET", "/v2", headers={"Authorization": f"Bearer {token}"})
            assert connection.getresponse().status == status
            connection.close()


def test_files_that_are_no_access_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("# nobody\n")
    with pytest.raises(OpscopeError, match="has no token"):
        access.load(None, None, str(tmp_path / "empty"))
    with pytest.raises(OpscopeError, match="needs both"):
        access.load("cert.pem", None, None)
    with pytest.raises(OpscopeError, match="No such file"):
        access.load(None, None, str(tmp_path / "nothing"))


def test_too_large_messages_are_refused_at_once(tmp_path: Path) -> None:
    path = save_double(tmp_path / "m.pt", rule=Rule(max_batch_size=100_000))
    limits = Limits(message_bytes=10_000)
    with running(source("m", path), limits=limits) as server:
        with triton_client(server.grpc) as client:
            with pytest.raises(InferenceServerException, match="RESOURCE_EXHAUSTED"):
                client.infer("m", [x_input(1000)])
            assert client.infer("m", [x_input(100)]).as_numpy("y").shape == (100, 4)
        for headers in ({"Content-Length": "10001"}, {"Transfer-Encoding": "chunked"}):
            connection = http.client.HTTPConnection(server.http, timeout=60)
            connection.putrequest("POST", "/v2/models/m/infer")
            for name, value in headers.items():
                connection.putheader(name, value)
            connection.endheaders()
            if "Transfer-Encoding" in headers:
                connection.send(b"2ee0\r\n" + b" " * 12_000 + b"\r\n")
            assert connection.getresponse().status == 413
            connection.close()


def test_memory_and_requests_in_flight_are_limited(tmp_path: Path) -> None:
    path = save_double(tmp_path / "m.pt")
    limits = Limits(requests=1)
    with running(source("m", path), limits=limits) as server:
        first = http.client.HTTPConnection(server.http, timeout=60)
        first.putrequest("POST", "/v2/models/m/infer")
        first.putheader("Content-Length", "10")
        first.endheaders()  # and its body stays away
        until(lambda: server.server.service.http_admission.requests == 1, "the first request")
        second = http.client.HTTPConnection(server.http, timeout=60)
        second.request("POST", "/v2/models/m/infer", b"{}")
        reply = second.getresponse()
        assert (reply.status, list(json.loads(reply.read()))) == (429, ["error"])
        second.close()
        first.close()
        until(lambda: server.server.service.http_admission.requests == 0, "the first has gone")


def test_a_client_that_stalls_is_cut_off(tmp_path: Path) -> None:
    import socket

    limits = Limits(receive_s=0.2, idle_s=0.2)
    with running(source("m", save_double(tmp_path / "m.pt")), limits=limits) as server:
        host, port = server.http.split(":")
        for data in (
            b"",
            b"GET /v2",
            b"POST /v2 HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc",
        ):
            with socket.create_connection((host, int(port)), timeout=60) as sock:
                sock.sendall(data)
                try:
                    assert sock.recv(100) == b""
                except ConnectionResetError:
                    pass
        assert server.server.service.http_admission.bytes == 0


def test_a_server_that_stops_answers_what_is_in_flight(tmp_path: Path) -> None:
    rule = Rule(max_batch_size=64, max_queue_delay_ns=500_000_000)
    path = save_double(tmp_path / "m.pt", rule=rule)
    found: SimpleQueue[Any] = SimpleQueue()
    with running(source("m", path)) as server:
        client = triton_client(server.grpc)
        for _ in range(8):
            client.async_infer("m", [x_input()], lambda result, error: found.put(error or result))
        executor = server.server.repository.find("m")
        until(lambda: executor.in_flight == 8, "all requests wait")
    answers = [found.get(timeout=60) for _ in range(8)]
    assert [one.as_numpy("y").tolist() for one in answers] == [[[2.0] * 4]] * 8
    with pytest.raises(InferenceServerException):
        client.infer("m", [x_input()])
    client.close()


def test_sigterm_ends_the_command(tmp_path: Path) -> None:
    path = save_double(tmp_path / "m.pt")
    command = "serve-model", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", f"m={path}"
    process = subprocess.Popen(
        [Path(sys.executable).with_name("opscope"), *command], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        assert line.startswith("serving gRPC "), line
        with triton_client(line.split()[2].rstrip(",")) as client:
            assert client.infer("m", [x_input()]).as_numpy("y").tolist() == [[2.0] * 4]
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert process.stderr.read() == "draining\n"
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
