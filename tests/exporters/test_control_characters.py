"""Line breaks in names and labels reach callbacks unchanged; displays show "?"."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from opscope.cli.top import command as top
from opscope.host.host import Host
from opscope.host.snapshot import Snapshot
from opscope.server.exporter import PushExporter, load
from opscope_exporters.prometheus.exporter import Prometheus
from tests.record.programs import output_of

PROGRAM = """
import opscope
from opscope.record import recorder
seen = []
opscope.add_global_callback(lambda fn: seen.append((fn.name, fn.debug_info)))
recorder.start({directory!r})
for name in ("mine::two\\nlines", "mine::two\\rlines", "mine::tab\\tand \\x1b[31mred"):
    with opscope.debug_info(model_id="a\\nb"), opscope.record_function(name):
        pass
recorder.stop()
print(seen[0])
"""
SHOWN = {"mine::two?lines": 2, "mine::tab?and ?[31mred": 1}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    lines = output_of(PROGRAM.format(directory=str(tmp_path)))
    assert lines == ["('mine::two\\nlines', {'model_id': 'a\\nb'})"]
    return tmp_path


@pytest.fixture
def snapshot(directory: Path) -> Snapshot:
    return Host([str(directory)], consume=False).collect()


def test_names_that_become_equal_are_one_series(snapshot: Snapshot) -> None:
    calls = dict(zip([key.op for key in snapshot.keys], snapshot.calls, strict=True))
    assert calls == SHOWN
    assert {key.labels for key in snapshot.keys} == {(("model_id", "a?b"),)}


@pytest.mark.parametrize("accept", ["", "application/openmetrics-text; version=1.0.0"])
def test_the_prometheus_page_is_whole(snapshot: Snapshot, accept: str) -> None:
    page = b"".join(Prometheus(2).page(snapshot, accept)[0]).decode()
    parse: Any = openmetrics.text_string_to_metric_families if accept else parse_text
    samples = [sample for family in parse(page) for sample in family.samples]
    of_operators = [sample.labels for sample in samples if "op" in sample.labels]
    assert {labels["op"] for labels in of_operators} == SHOWN.keys()
    assert {labels["model_id"] for labels in of_operators} == {"a?b"}


def test_a_json_line_is_one_line(snapshot: Snapshot, tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    exporter = load("jsonl", {"file": str(path)}, {})
    assert isinstance(exporter, PushExporter)
    exporter.export(snapshot)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    found = {line["op"]: line["opscope.op.calls"] for line in lines if "op" in line}
    assert found == SHOWN


def test_an_operator_is_one_row_of_top(directory: Path) -> None:
    done = CliRunner().invoke(top, ["--once", "--directory", str(directory)])
    assert done.exit_code == 0
    rows = [line for line in done.output.splitlines() if "mine::" in line]
    assert len(rows) == 2
    assert "\x1b" not in done.output
