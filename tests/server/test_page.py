"""The agent's page in Chromium: current numbers of a real segment, no foreign resources.

Skipped without Chromium; CI has it.
"""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from opscope.host.host import Host
from opscope.processes.inventory import Unobserved
from opscope.server import live
from opscope.server.exporter import PageExporter, load
from opscope.server.history import History
from opscope.server.pages import Latest, Server
from tests.segments.segment_writer import Process, Range, SegmentWriter, start_of

HOSTILE = "<img src=x onerror=alert(1)>::op"
TIMEOUT_S = 300

chromium = pytest.mark.skipif(
    shutil.which("chromium") is None, reason="there is no chromium to look at the page with"
)


def history(span_s: float = 600, every_s: float = 20) -> History:
    """Of an agent that ran for so long before the page was opened."""
    with tempfile.TemporaryDirectory() as place:
        now, writer = 0.0, SegmentWriter()
        past = History(lambda: now)
        host = Host([place], consume=False, clock_ns=lambda: round((1 + now) * 1e9))
        while now <= span_s:
            writer.add([Range("numpy::earlier", 1e-2, 100, self_s=1e-2)]).write(Path(place))
            past.note(host.collect())
            now += every_s
    return past


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
    pages = live.routes(latest.snapshot, lambda _: [refused], history=history())
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
def test_the_page_shows_operators_processes_and_unobserved_processes(
    server: Server, tmp_path: Path
) -> None:
    markup = shown(f"{server.url}/", tmp_path / "profile")
    text = text_of(markup)
    assert re.search(r"numpy::add\s+numpy\s+\S+\s+75\.0 %\s+75\.0 %", text)
    assert re.search(r"train\.py\s+trainer", text)
    assert re.search(r"pip\s+pip: deny list", text)
    assert re.search(r"as of \d", text)
    # Process names are shown as text, whatever their characters.
    assert "&lt;img src=x onerror=alert(1)&gt;::op" in markup


@chromium
def test_imprecise_values_are_marked_and_grey(server: Server, tmp_path: Path) -> None:
    writer = SegmentWriter(Process(pid=1, process_start=start_of(1)))
    writer.add([Range("numpy::inv", 1e-3, 2, 100.0, self_s=1e-3)])
    writer.variance("numpy::inv", 100.0**2, 0.1**2)
    writer.write(tmp_path)
    markup = shown(f"{server.url}/", tmp_path / "profile")
    rows = {name: row for row in re.findall(r"<tr.*?</tr>", markup) for name in _names(row)}
    assert 'class="unsure"' in rows["numpy::inv"] and "±" in rows["numpy::inv"]
    assert 'class="unsure"' not in rows["numpy::add"] and "±" not in rows["numpy::add"]
    assert text_of(rows["numpy::inv"]).split()[-3:] == ["\N{EN DASH}"] * 3


def _names(row: str) -> list[str]:
    return re.findall(r'<button class="open"[^>]*>(numpy::\w+)<', row)


def column(markup: str) -> list[str]:
    """The operators in the order of their rows."""
    table = markup.split('id="operators"')[1].split("</table>")[0]
    return re.findall(r'<button class="open" type="button">([^<]*)<', table)


# The server's second answer would be of a time in which nothing ran, so each look has its own.
@chromium
@pytest.mark.parametrize(
    ("fragment", "order"),
    [
        ("", ["numpy::add", "&lt;img src=x onerror=alert(1)&gt;::op"]),
        ("#sort=-total", ["&lt;img src=x onerror=alert(1)&gt;::op", "numpy::add"]),
        ("#sort=operator", ["&lt;img src=x onerror=alert(1)&gt;::op", "numpy::add"]),
        ("#filter=NUMPY", ["numpy::add"]),
        ("#filter=xyz&sort=toString", []),
    ],
)
def test_the_address_carries_order_and_filter(
    server: Server, tmp_path: Path, fragment: str, order: list[str]
) -> None:
    markup = shown(f"{server.url}/{fragment}", tmp_path / "profile")
    assert column(markup) == order
    assert ("none matches the filter" in markup) == (order == [])
    if fragment == "#sort=operator":
        assert re.search(r'aria-sort="ascending"><button[^>]*>operator', markup)


@chromium
def test_the_address_carries_the_operator_whose_details_are_open(
    server: Server, tmp_path: Path
) -> None:
    markup = shown(f"{server.url}/#operator=numpy%3A%3Aadd", tmp_path / "profile")
    section = re.search(r'<section id="operator"[^>]*>', markup)
    assert section and "hidden" not in section[0]
    assert re.search(r'id="operator-heading"[^>]*>numpy::add<', markup)
    parts = markup.split('id="operator-parts"')[1].split("</table>")[0]
    assert "forward" in parts and "trainer" in parts


@chromium
def test_the_charts_begin_before_the_page_was_opened(server: Server, tmp_path: Path) -> None:
    markup = shown(f"{server.url}/#operator=numpy%3A%3Aearlier", tmp_path / "profile")
    text = text_of(markup)
    assert re.search(r"\b(9|10) min ago", text)
    by_operator = markup.split('id="by-operator"')[1].split("</figure>")[0]
    assert "numpy::earlier" in by_operator
    calls = markup.split('id="operator-calls"')[1].split("</figure>")[0]
    assert "polyline" in calls


@chromium
@pytest.mark.parametrize(
    ("fragment", "ago"), [("", "60 min"), ("#span=day", "24 h"), ("#span=start", "3 d")]
)
def test_the_charts_go_back_to_the_agents_start(tmp_path: Path, fragment: str, ago: str) -> None:
    SegmentWriter().add([Range("numpy::add", 1e-3, 30, self_s=1e-3)]).write(tmp_path)
    latest = Latest(Host([str(tmp_path)], consume=False).collect)
    page = load("prometheus")
    assert isinstance(page, PageExporter)
    pages = live.routes(latest.snapshot, lambda _: [], history=history(3 * 86_400 + 600, 600))
    server = Server("127.0.0.1", 0, latest, page, more=pages)
    markup = shown(f"{server.url}/{fragment}", tmp_path / "profile")
    server.close()
    assert f"{ago} ago" in text_of(markup.split('id="by-framework"')[1].split("</svg>")[0])


POINTED = """<svg id="mark" xmlns="http://www.w3.org/2000/svg"></svg>
<figure id="f"><figcaption>Calls</figcaption><div class="drawing"></div></figure>
<script>const choice = {{ span_s: Infinity }};</script><script src="{script}"></script><script>
const history_ = new History();
for (let i = 0; i < 60; i++) history_.add(i, [["add", 100 + i]]);
chart(document.getElementById("f"), history_, String, true);
const svg = document.querySelector(".drawing > svg");
const {{ left, width }} = svg.getBoundingClientRect();
const shown = () => document.querySelector(".legend b").textContent;
const move = (kind, x) => svg.dispatchEvent(new PointerEvent(kind, {{ clientX: x }}));
const seen = [shown()];
move("pointermove", left + width * 0.5);
seen.push(shown());
chart(document.getElementById("f"), history_, String, true);
seen.push(shown());
move("pointerleave", 0);
seen.push(shown());
document.title = seen.join(" ");
</script>"""


@chromium
def test_pointing_at_a_chart_shows_the_values_of_that_time(tmp_path: Path) -> None:
    page, script = tmp_path / "pointed.html", tmp_path / "charts.js"
    script.write_bytes(live.file("charts.js"))
    page.write_text(POINTED.format(script=script.as_uri()))
    title = re.search(r"<title>(.*?)</title>", shown(page.as_uri(), tmp_path / "profile"))
    assert title
    before, pointed, drawn_anew, after = map(int, title[1].split())
    assert (before, after) == (159, 159)
    assert 120 < pointed < 140
    assert drawn_anew == pointed


UNKNOWN = """<svg id="mark" xmlns="http://www.w3.org/2000/svg"></svg>
<figure id="f"><figcaption>Durations</figcaption><div class="drawing"></div></figure>
<script>const choice = {{ span_s: Infinity }};</script><script src="{script}"></script><script>
const history_ = new History();
for (let i = 0; i < 60; i++)
  history_.add(i, i % 30 < 10 ? [["p50", 5], ["p99", 9]] : i < 50 ? [["p50", 5]] : []);
chart(document.getElementById("f"), history_, (value) => value ?? "unknown", false);
const all = (what) => [...document.querySelectorAll(what)];
document.title = JSON.stringify([all(".legend b").map((one) => one.textContent).join(" "),
  all("polyline.c0").length, all("polyline.c1").length]);
</script>"""


@chromium
def test_a_line_has_gaps_where_nothing_is_known(tmp_path: Path) -> None:
    page, script = tmp_path / "unknown.html", tmp_path / "charts.js"
    script.write_bytes(live.file("charts.js"))
    page.write_text(UNKNOWN.format(script=script.as_uri()))
    title = re.search(r"<title>(.*?)</title>", shown(page.as_uri(), tmp_path / "profile"))
    assert title and title[1] == '["unknown unknown",1,2]'


@chromium
def test_a_paused_page_asks_once(server: Server, tmp_path: Path) -> None:
    markup = shown(f"{server.url}/#paused", tmp_path / "profile")
    assert "go on" in markup and "paused, as of" in text_of(markup)
    assert server.requests.facts()["requests"]["/api/live", "200"] == 1


@chromium
def test_the_page_asks_again_by_itself(server: Server, tmp_path: Path) -> None:
    shown(f"{server.url}/", tmp_path / "profile")
    assert server.requests.facts()["requests"]["/api/live", "200"] >= 2


def test_the_policy_forbids_resources_from_elsewhere(server: Server) -> None:
    for path in ("/", "/page.css", "/page.js", "/operators.js", "/api/live"):
        with urlopen(f"{server.url}{path}", timeout=TIMEOUT_S) as answer:
            assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
