"""The webhook over TLS: 1,000 admissions, a renewed certificate, hostile clients."""

import http.client
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from opscope.errors import OpscopeError
from opscope.kubernetes.namespaces import Namespaces
from opscope.kubernetes.webhook import Certificate, Webhook
from tests.exporters.peers import free_port
from tests.kubernetes.test_injection import IMAGES, POD, review
from tests.server.test_access import make_certificate


@contextmanager
def running(place: Path) -> Iterator[tuple[Webhook, Path, Path]]:
    certificate, key = map(Path, make_certificate(place))
    server = Webhook(
        ("127.0.0.1", 0), Certificate(str(certificate), str(key)), IMAGES, lambda name: {}
    )
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server, certificate, key
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def trusting(certificate: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificate))


class Client(http.client.HTTPSConnection):
    """A connection that its `with` block closes."""

    def __init__(self, port: int, context: ssl.SSLContext) -> None:
        super().__init__("127.0.0.1", port, timeout=30, context=context)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect(server: Webhook, certificate: Path) -> Client:
    return Client(server.server_port, trusting(certificate))


def ask(
    connection: http.client.HTTPSConnection, body: bytes, path: str = "/inject"
) -> tuple[int, bytes]:
    connection.request("POST", path, body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_a_thousand_admissions_by_eight_clients_admit_every_pod(tmp_path: Path) -> None:
    with running(tmp_path) as (server, certificate, _):

        def client(number: int) -> int:
            observed = 0
            with connect(server, certificate) as connection:
                for i in range(125):
                    uid = f"{number}-{i}"
                    given: Any = POD if i % 5 else {**POD, "spec": None}
                    status, body = ask(connection, json.dumps(review(given, uid=uid)).encode())
                    response = json.loads(body)["response"]
                    assert (status, response["uid"], response["allowed"]) == (200, uid, True)
                    observed += "patch" in response
            return observed

        with ThreadPoolExecutor(8) as pool:
            assert list(pool.map(client, range(8))) == [100] * 8


def test_a_renewed_certificate_is_in_use_without_a_restart(tmp_path: Path) -> None:
    with running(tmp_path) as (server, certificate, key):
        old = trusting(certificate)
        (tmp_path / "new").mkdir()
        new_certificate, new_key = map(Path, make_certificate(tmp_path / "new"))
        os.replace(new_key, key)
        os.replace(new_certificate, certificate)
        with connect(server, certificate) as client:
            assert ask(client, json.dumps(review(POD)).encode())[0] == 200
        with (
            Client(server.server_port, old) as client,
            pytest.raises(ssl.SSLCertVerificationError),
        ):
            client.connect()


def test_a_certificate_that_cannot_be_loaded_leaves_the_old_one_and_health_says_so(
    tmp_path: Path,
) -> None:
    with running(tmp_path) as (server, certificate, _):
        context = trusting(certificate)
        certificate.write_text("half")
        with Client(server.server_port, context) as client:
            assert ask(client, json.dumps(review(POD)).encode())[0] == 200
            client.request("GET", "/healthz")
            answer = client.getresponse()
            assert (answer.status, answer.read()[:12]) == (500, b"certificate:")


@pytest.mark.parametrize("body", [b"", b"no json", b"[" * 100_000])
def test_malformed_bodies_get_a_status_and_the_next_request_an_answer(
    tmp_path: Path, body: bytes
) -> None:
    with running(tmp_path) as (server, certificate, _), connect(server, certificate) as connection:
        assert ask(connection, body)[0] == 400
        assert ask(connection, b"{}", "/other")[0] == 404
        assert ask(connection, json.dumps(review(POD)).encode())[0] == 200


def test_silent_plain_and_lying_clients_delay_no_other(tmp_path: Path) -> None:
    with running(tmp_path) as (server, certificate, _):
        address = ("127.0.0.1", server.server_port)
        silent = [socket.create_connection(address) for _ in range(20)]
        with socket.create_connection(address) as plain, suppress(ConnectionResetError):
            plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
            plain.recv(100)
        with connect(server, certificate) as lying:
            lying.putrequest("POST", "/inject")
            lying.putheader("Content-Length", "99999999999")
            lying.endheaders()
            assert lying.getresponse().status == 413
        with connect(server, certificate) as client:
            assert ask(client, json.dumps(review(POD)).encode())[0] == 200
        for one in silent:
            one.close()


def test_files_that_are_no_certificate_are_an_error_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    with pytest.raises(OpscopeError, match=str(tmp_path / "a")):
        Certificate(str(tmp_path / "a"), str(tmp_path / "a"))


def test_the_command_serves_and_ends(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    port = free_port()
    words = ["--image", "i:1", "--tls-cert", certificate, "--tls-key", key]
    start = "from opscope.cli import main; main()"
    command = [sys.executable, "-c", start, "webhook", *words]
    process = subprocess.Popen(
        [*command, "--listen", f"127.0.0.1:{port}"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == f"webhook at https://127.0.0.1:{port}/inject\n"
    # There is no cluster: the namespace's annotations are unknown, and the pod is admitted.
    given = {**POD, "metadata": {"name": "n"}}
    with Client(port, trusting(Path(certificate))) as client:
        status, body = ask(client, json.dumps(review(given)).encode())
    assert status == 200 and json.loads(body)["response"].keys() == {"uid", "allowed"}
    process.terminate()
    assert process.wait(60) == 0
    process.stdout.close()


# ---- annotations of namespaces -----------------------------------------------------------------


class ApiServer:
    """The part of the API server that reads a namespace, over TLS with a token."""

    def __init__(self, place: Path) -> None:
        certificate, key = make_certificate(place)
        (place / "ca.crt").write_bytes(Path(certificate).read_bytes())
        (place / "token").write_text("t0ken\n")
        self.asked: list[tuple[str, str | None]] = []
        self.body = json.dumps({"metadata": {"annotations": {"opscope.dev/inject": "true"}}})
        outer = self

        class Page(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append((self.path, self.headers["Authorization"]))
                self.send_response(200)
                self.end_headers()
                self.wfile.write(outer.body.encode())

            def log_message(self, format: str, *args: object) -> None:
                """Logs nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Page)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ApiServer]:
    found = ApiServer(tmp_path)
    thread = threading.Thread(target=found.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield found
    found.server.shutdown()
    thread.join()
    found.server.server_close()


def test_a_namespaces_annotations_are_read_once_in_a_while(api: ApiServer, tmp_path: Path) -> None:
    now = [0.0]
    found = Namespaces(api.url, str(tmp_path), lambda: now[0])
    for _ in range(3):
        assert found.annotations("ml") == {"opscope.dev/inject": "true"}
    assert api.asked == [("/api/v1/namespaces/ml", "Bearer t0ken")]
    api.body = '{"metadata": {}}'
    now[0] = 31.0
    assert found.annotations("ml") == {}
    assert len(api.asked) == 2


@pytest.mark.parametrize("body", ["", "[]", '{"metadata": {"annotations": 3}}'])
def test_after_a_failure_the_last_known_ones_hold(
    api: ApiServer, tmp_path: Path, body: str
) -> None:
    now = [0.0]
    found = Namespaces(api.url, str(tmp_path), lambda: now[0])
    known = found.annotations("ml")
    api.body = body
    now[0] = 31.0
    assert found.annotations("ml") == known
    assert "namespace ml" in found.failure
    assert found.annotations("other") == {}


def test_without_a_cluster_there_are_none() -> None:
    found = Namespaces("https://127.0.0.1:1", "/nowhere")
    assert found.annotations("ml") == {}
    assert found.failure
