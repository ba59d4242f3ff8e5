"""Pages are compressed for clients that accept it, and say so."""

import gzip
from collections.abc import Iterator
from urllib.request import Request, urlopen

import pytest

from opscope.bench.scrape import snapshot_of
from opscope.server.exporter import PageExporter, load
from opscope.server.pages import Latest, Server

TIMEOUT_S = 300


@pytest.fixture
def server() -> Iterator[Server]:
    exporter = load("prometheus")
    assert isinstance(exporter, PageExporter)
    server = Server("127.0.0.1", 0, Latest(lambda: snapshot_of(20, 0)), exporter)
    yield server
    server.close()


def get(url: str, accepted: str) -> tuple[bytes, str | None, str | None]:
    with urlopen(Request(url, headers={"Accept-Encoding": accepted}), timeout=TIMEOUT_S) as answer:
        return answer.read(), answer.headers["Content-Encoding"], answer.headers["Vary"]


@pytest.mark.parametrize("accepted", ["gzip", "deflate, gzip;q=0.5", "br , GZIP", "gzip; q=1.0"])
def test_a_client_that_takes_gzip_gets_it(server: Server, accepted: str) -> None:
    url = f"{server.url}/metrics"
    packed, coding, varies = get(url, accepted)
    plain, none, _ = get(url, "identity")
    assert (coding, none) == ("gzip", None)
    assert varies == "Accept, Accept-Encoding"
    assert gzip.decompress(packed) == plain
    assert len(packed) < len(plain) / 5


@pytest.mark.parametrize("accepted", ["", "deflate", "gzip;q=0", "gzip;q=0.000", "xgzip"])
def test_one_that_does_not_gets_it_plain(server: Server, accepted: str) -> None:
    page, coding, _ = get(f"{server.url}/metrics", accepted)
    assert coding is None
    assert page.startswith(b"# HELP")


def test_a_page_of_a_few_bytes_is_not_worth_it(server: Server) -> None:
    assert get(f"{server.url}/healthz", "gzip")[:2] == (b"ok\n", None)
