"""Access to the agent's pages, over TLS and with passwords; limits for a client."""

import base64
import hashlib
import os
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from opscope.errors import AgentError
from opscope.host.host import Host
from opscope.server import bounded_io, connections
from opscope.server.access import Certificate, Passwords, password_line
from opscope.server.exporter import PageExporter, load
from opscope.server.pages import Latest, Server

TIMEOUT_S = 300


def prometheus() -> PageExporter:
    exporter = load("prometheus")
    assert isinstance(exporter, PageExporter)
    return exporter


def serving(place: Path, host: str = "127.0.0.1", **options: object) -> Server:
    latest = Latest(Host([str(place)], consume=False).collect)
    return Server(host, 0, latest, prometheus(), **options)  # type: ignore[arg-type]


def make_certificate(place: Path) -> tuple[str, str]:
    cert, key = place / "tls.crt", place / "tls.key"
    options = "-x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost"
    names = "subjectAltName=DNS:localhost,IP:127.0.0.1"
    files = ("-keyout", str(key), "-out", str(cert))
    subprocess.run(
        ["openssl", "req", *options.split(), "-addext", names, *files],
        check=True,
        capture_output=True,
    )
    return str(cert), str(key)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def users(tmp_path: Path) -> Path:
    path = tmp_path / "users"
    path.write_text(f"# who\n\n{password_line('ann', 'größe:1')}\n{password_line('bob', 'b')}\n")
    return path


def basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


def status(url: str, **headers: str) -> int:
    request = Request(url, headers=headers)
    try:
        with urlopen(request, timeout=TIMEOUT_S) as answer:
            answer.read()
            return int(answer.status)
    except HTTPError as error:
        return error.code


# ---- passwords --------------------------------------------------------------------------------


def test_pages_need_a_name_and_its_password_and_probes_do_not(tmp_path: Path, users: Path) -> None:
    server = serving(tmp_path, passwords=Passwords(str(users)))
    page = f"{server.url}/metrics"
    for _ in range(2):
        assert status(page, Authorization=basic("ann", "größe:1")) == 200
        assert status(page, Authorization=basic("ann", "wrong")) == 401
        assert status(page, Authorization=basic("bob", "größe:1")) == 401
        assert status(page, Authorization=basic("nobody", "b")) == 401
        assert status(page, Authorization="Basic %%%") == 401
        assert status(page, Authorization="Bearer b") == 401
        assert status(page) == 401
    assert status(f"{server.url}/healthz") == 200
    with pytest.raises(HTTPError) as error:
        urlopen(page, timeout=TIMEOUT_S)
    assert error.value.headers["WWW-Authenticate"].startswith("Basic realm=")
    error.value.close()
    server.close()


def test_a_name_that_is_taken_from_the_file_is_refused_from_then_on(users: Path) -> None:
    passwords = Passwords(str(users))
    assert passwords.allows(basic("bob", "b"))
    lines = users.read_text().splitlines()
    users.write_text("\n".join(lines[:-1]) + "\n")
    assert not passwords.allows(basic("bob", "b"))
    assert passwords.allows(basic("ann", "größe:1"))
    users.unlink()
    assert not passwords.allows(basic("ann", "größe:1"))


def test_a_good_password_is_not_computed_again(
    users: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passwords = Passwords(str(users))
    assert passwords.allows(basic("bob", "b"))
    monkeypatch.setattr("hashlib.scrypt", lambda *_, **__: pytest.fail("computed again"))
    assert passwords.allows(basic("bob", "b"))


def test_an_unknown_name_takes_as_much_work_as_a_known_one(
    users: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passwords = Passwords(str(users))
    real = hashlib.scrypt
    computed: list[int] = []

    def counted(password: bytes, **options: Any) -> bytes:
        computed.append(options["n"])
        return real(password, **options)

    monkeypatch.setattr("hashlib.scrypt", counted)
    for name in ("ann", "nobody"):
        assert not passwords.allows(basic(name, "wrong"))
    assert computed == [1 << 14, 1 << 14]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nobody\n",
        "ann:secret\n",
        "ann:$2y$05$abcdefghijklmnopqrstuv\n",
        "ann:scrypt:16384:8:1:AAAA:AAAA\n",
        "ann:scrypt:3:8:1:AAAA:" + base64.b64encode(bytes(32)).decode(),
        f"ann:scrypt:{1 << 40}:8:1:AAAA:" + base64.b64encode(bytes(32)).decode(),
        "\udcff",
    ],
)
def test_a_password_file_that_cannot_be_used_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "users"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(AgentError, match=f"basic_auth_file {path}"):
        Passwords(str(path))


@pytest.mark.parametrize("name", ["", "a:b", "a\nb", "#a", " a", "a\u2028b"])
def test_an_invalid_name_is_refused(name: str) -> None:
    with pytest.raises(AgentError, match="is not a valid name"):
        password_line(name, "x")


# ---- TLS --------------------------------------------------------------------------------------


def test_pages_over_tls(tmp_path: Path, certificate: tuple[str, str]) -> None:
    server = serving(tmp_path, certificate=Certificate(*certificate))
    assert server.url.startswith("https://")
    trusting = ssl.create_default_context(cafile=certificate[0])
    with urlopen(f"{server.url}/metrics", timeout=TIMEOUT_S, context=trusting) as answer:
        assert b"opscope_build_info" in answer.read()
    assert status(f"http://{server.url.partition('://')[2]}/metrics") == 426
    server.close()


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("with_passwords", [False, True])
def test_probes_are_answered_with_tls_and_passwords_on(
    tmp_path: Path, certificate: tuple[str, str], users: Path, scheme: str, with_passwords: bool
) -> None:
    """Kubelet's probes have no password and verify no certificate; probes whose manifest does not
    configure TLS are unencrypted."""
    options: dict[str, Any] = {"certificate": Certificate(*certificate)}
    if with_passwords:
        options["passwords"] = Passwords(str(users))
    server = serving(tmp_path, **options)
    trusting = ssl._create_unverified_context()  # as kubelet
    place = server.url.partition("://")[2]

    def probed(path: str) -> int:
        try:
            with urlopen(f"{scheme}://{place}{path}", timeout=TIMEOUT_S, context=trusting) as one:
                return int(one.status)
        except HTTPError as error:
            with error:
                return error.code

    assert probed("/healthz") == 200
    assert probed("/readyz") == 503
    server._latest.snapshot()
    assert probed("/readyz") == 200
    for path in ("/metrics", "/", "/nothing"):
        expected = 401 if with_passwords else 200 if path != "/nothing" else 404
        if path == "/" and not with_passwords:
            expected = 404  # the live page is the command's
        assert probed(path) == (426 if scheme == "http" else expected)
    server.close()


def test_a_client_that_says_nothing_on_a_port_of_tls_is_cut_off(
    tmp_path: Path, certificate: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_io, "FIRST_BYTE_S", 0.2)
    server = serving(tmp_path, certificate=Certificate(*certificate))
    with socket.create_connection(server.address, timeout=TIMEOUT_S) as silent:
        assert ended(silent)
    server.close()


def test_a_renewed_certificate_is_taken_up(tmp_path: Path) -> None:
    paths = make_certificate(tmp_path)
    server = serving(tmp_path, certificate=Certificate(*paths))
    first = ssl.get_server_certificate(server.address)
    make_certificate(tmp_path)
    second = ssl.get_server_certificate(server.address)
    Path(paths[0]).write_text("half written")
    assert ssl.get_server_certificate(server.address) == second != first
    server.close()


def test_a_certificate_that_cannot_be_used_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="tls_cert /none, tls_key /none: No such file"):
        Certificate("/none", "/none")


# ---- limits for a client ----------------------------------------------------------------------


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = serving(tmp_path)
    yield server
    server.close()


def ended(connection: socket.socket) -> bool:
    try:
        return connection.recv(1 << 20) == b""
    except ConnectionError:
        return True


def test_a_request_that_dribbles_in_is_cut_off(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_io, "REQUEST_S", 0.2)
    with socket.create_connection(server.address, timeout=TIMEOUT_S) as slow:
        slow.sendall(b"GET / HT")
        assert ended(slow)


def test_a_connection_that_says_nothing_is_cut_off(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_io, "FIRST_BYTE_S", 0.2)
    with socket.create_connection(server.address, timeout=TIMEOUT_S) as silent:
        assert ended(silent)


def test_a_request_of_many_bytes_is_cut_off(server: Server) -> None:
    header = b"x: " + b"y" * 60_000 + b"\r\n"
    with socket.create_connection(server.address, timeout=TIMEOUT_S) as client:
        try:
            client.sendall(b"GET /healthz HTTP/1.1\r\n" + 3 * header + b"\r\n")
        except ConnectionError:
            pass
        assert ended(client)


def test_a_new_client_gets_in_where_idle_ones_hold_every_connection(server: Server) -> None:
    idle = [
        socket.create_connection(server.address, timeout=TIMEOUT_S)
        for _ in range(connections.CONNECTION_LIMIT + 10)
    ]
    assert status(f"{server.url}/healthz") == 200
    for connection in idle:
        connection.close()


def test_a_body_is_not_taken_for_a_second_request(server: Server) -> None:
    hidden = b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with socket.create_connection(server.address, timeout=TIMEOUT_S) as client:
        head = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
        client.sendall(head % len(hidden) + hidden)
        said = b""
        while part := client.recv(1 << 16):
            said += part
    assert said.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    "name", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example"]
)
def test_a_local_port_does_not_answer_to_names_from_elsewhere(server: Server, name: str) -> None:
    assert status(f"{server.url}/metrics", Host=name) == 403
    assert status(f"{server.url}/metrics", Host="localhost:9464") == 200
    assert status(f"{server.url}/metrics", Host="[::1]:9464") == 200


def test_a_server_does_not_reveal_its_software(server: Server) -> None:
    with urlopen(f"{server.url}/healthz", timeout=TIMEOUT_S) as answer:
        assert answer.headers["Server"].strip() == "opscope"


# ---- readiness and news -----------------------------------------------------------------------


def test_ready_means_that_a_recent_pass_succeeded(tmp_path: Path) -> None:
    latest = Latest(Host([str(tmp_path)], consume=False).collect)
    server = Server("127.0.0.1", 0, latest, prometheus(), fresh_s=1000.0)
    assert status(f"{server.url}/readyz") == 503
    latest.snapshot()
    assert status(f"{server.url}/readyz") == 200
    server.close()
    server = Server("127.0.0.1", 0, latest, prometheus(), fresh_s=0.0)
    assert status(f"{server.url}/readyz") == 503
    assert status(f"{server.url}/healthz") == 200
    server.close()


def test_requests_are_counted_by_path_and_status(server: Server) -> None:
    status(f"{server.url}/metrics")
    status(f"{server.url}/nothing")
    facts = server.requests.facts()
    deadline = time.monotonic() + TIMEOUT_S
    while sum(facts["requests"].values()) < 2 and time.monotonic() < deadline:
        facts = server.requests.facts()  # counted after the answer is sent
    assert facts["requests"] == {("/metrics", "200"): 1, ("", "404"): 1}
    assert facts["request_s"] > 0


def test_a_port_for_others_is_said_to_be_one(
    tmp_path: Path, users: Path, certificate: tuple[str, str]
) -> None:
    def said(**options: object) -> str:
        server = serving(tmp_path, "0.0.0.0", **options)
        try:
            return server.exposure
        finally:
            server.close()

    assert "without a password" in said()
    assert "unencrypted" in said(passwords=Passwords(str(users)))
    both = said(passwords=Passwords(str(users)), certificate=Certificate(*certificate))
    assert both.endswith("is reachable from other hosts")
    local = serving(tmp_path)
    assert local.exposure == ""
    local.close()


AGENT = [sys.executable, "-c", "from opscope.cli import main; main()", "agent"]


def test_the_command_takes_all_of_it_from_settings(
    tmp_path: Path, users: Path, certificate: tuple[str, str]
) -> None:
    segments = tmp_path / "segments"
    settings = {
        "OPSCOPE_DIR": str(segments),
        "OPSCOPE_LISTEN": "0.0.0.0:0",
        "OPSCOPE_TLS_CERT": certificate[0],
        "OPSCOPE_TLS_KEY": certificate[1],
        "OPSCOPE_BASIC_AUTH_FILE": str(users),
    }
    with subprocess.Popen(
        AGENT, env=os.environ | settings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as agent:
        assert agent.stdout is not None
        url = agent.stdout.readline().split()[-1].replace("0.0.0.0", "localhost") + "metrics"
        assert url.startswith("https://")
        trusting = ssl.create_default_context(cafile=certificate[0])
        request = Request(url, headers={"Authorization": basic("bob", "b")})
        with urlopen(request, timeout=TIMEOUT_S, context=trusting) as answer:
            page = answer.read().decode()
        agent.terminate()
        _, errors = agent.communicate(timeout=TIMEOUT_S)
    assert "opscope_agent_memory_bytes" in page
    assert "opscope_agent_cpu_time_seconds_total" in page
    assert "is reachable from other hosts" in errors
    assert (segments / "agent.state").exists()


def test_a_password_line_is_made_by_the_command() -> None:
    done = subprocess.run(
        [*AGENT, "--make-password", "ann"],
        input="secret\nsecret\n",
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
    )
    assert done.stdout.splitlines()[-1].startswith("ann:scrypt:16384:8:1:")
