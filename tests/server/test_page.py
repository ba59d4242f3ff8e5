"""The agent's page in Chromium: numbers of a real segment, kept up to date, nothing foreign.

Skipped where there is no Chromium; CI has it.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from opscope.agent import live
from opscope.agent.exporter import PageExporter, load
from opscope.agent.host import Host
from opscope.agent.inventory import Unobserved
from opscope.agent.server import Latest, Server
from tests.agent.segment_writer import Range, SegmentWriter

HOSTILE = "<img src=x onerror=alert(1)>::op"
TIMEOUT_S = 300

chromium = pytest.mark.skipif(
    shutil.which("chromium") is None, reason="there is no chromium to look at the page with"
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    writer = SegmentWriter().add([Range("numpy::add", 1e-3, 30, self_s=1e-3)])
    writer.add([Range(HOSTILE, 1e-3, 10, self_s=1e-3)])
    writer.notes({"program": "train.py", "service.name": "trainer", "bridge.numpy": "attached"})
    writer.write(tmp_path)
    latest = Latest(Host([str(tmp_path)], consume=False).collect)
    page = load("prometheus")
    assert isinstance(page, PageExporter)
    refused = Unobserved(7, "root", "pip", "pip: deny list", "denied")
    pages = live.routes(latest.snapshot, lambda _: [refused])
    server = Server("127.0.0.1", 0, latest, page, more=pages)
    yield server
    server.close()


def shown(url: str, profile: Path) -> str:
    """The page's markup once its script has run for two virtual seconds."""
    command = [
        "chromium",
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        f"--user-data-dir={profile}",
        "--virtual-time-budget=2500",
        "--dump-dom",
        url,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    return done.stdout


def text_of(markup: str) -> str:
    return re.sub(r"<[^>]*>", " ", markup)


@chromium
def test_the_page_shows_operators_processes_and_who_is_not_observed(
    server: Server, tmp_path: Path
) -> None:
    markup = shown(f"{server.url}/", tmp_path / "profile")
    text = text_of(markup)
    assert re.search(r"numpy::add\s+numpy\s+\S+\s+75\.0 %\s+75\.0 %", text)
    assert re.search(r"train\.py\s+trainer", text)
    assert re.search(r"pip\s+pip: deny list", text)
    assert re.search(r"as of \d", text)
    # What a process is called is text, whatever it is called.
    assert "&lt;img src=x onerror=alert(1)&gt;::op" in markup


@chromium
def test_the_page_asks_again_by_itself(server: Server, tmp_path: Path) -> None:
    shown(f"{server.url}/", tmp_path / "profile")
    assert server.requests.facts()["requests"]["/api/live", "200"] >= 2


def test_the_browser_is_told_to_load_nothing_from_elsewhere(server: Server) -> None:
    for path in ("/", "/page.css", "/page.js", "/api/live"):
        with urlopen(f"{server.url}{path}", timeout=TIMEOUT_S) as answer:
            assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
