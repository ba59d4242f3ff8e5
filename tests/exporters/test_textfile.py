"""The file for node_exporter's collector: complete at any moment, and equal to the page."""

import os
from contextlib import suppress
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse

from opscope.bench.scrape import snapshot_of
from opscope.errors import AgentError, ConfigError
from opscope.server.exporter import PushExporter, load
from opscope_exporters.prometheus.exporter import Prometheus
from tests.exporters.peers import TIMEOUT_S, free_port, running, wait_for


def textfile(path: Path) -> PushExporter:
    exporter = load("textfile", {"path": str(path), "interval_s": "1"}, {})
    assert isinstance(exporter, PushExporter)
    return exporter


def test_the_file_is_the_page_and_everybody_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "opscope.prom"
    before = os.umask(0o077)
    try:
        exporter = textfile(path)
        for seed in range(2):
            exporter.export(snapshot_of(3, seed))
            assert path.read_bytes() == b"".join(Prometheus().page(snapshot_of(3, seed), "")[0])
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o644
    assert [found.name for found in tmp_path.iterdir()] == ["opscope.prom"]
    exporter.close()
    assert path.exists()


def test_a_file_that_cannot_be_replaced_is_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "opscope.prom"
    exporter = textfile(path)
    path.mkdir()
    with pytest.raises(AgentError, match=r"cannot write .*opscope\.prom: Is a directory"):
        exporter.export(snapshot_of(1, 0))
    assert [found.name for found in tmp_path.iterdir()] == ["opscope.prom"]


def test_a_link_at_the_path_is_not_followed(tmp_path: Path) -> None:
    path, victim = tmp_path / "opscope.prom", tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "opscope.prom.new").symlink_to(victim)
    textfile(path).export(snapshot_of(1, 0))
    assert victim.read_text() == "precious"
    assert path.read_text().startswith("# HELP")


@pytest.mark.parametrize("path", ["", "opscope.prom", "/tmp/opscope.txt"])
def test_a_path_the_collector_would_not_read_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match=r"must be absolute and end in \.prom"):
        load("textfile", {"path": path}, {})


@pytest.mark.slow
def test_a_real_node_exporter_serves_what_is_in_the_file(
    tmp_path: Path, node_exporter: Path
) -> None:
    textfile(tmp_path / "opscope.prom").export(snapshot_of(3, 0))
    port = free_port()
    command = [
        str(node_exporter),
        f"--web.listen-address=127.0.0.1:{port}",
        "--collector.disable-defaults",
        "--collector.textfile",
        f"--collector.textfile.directory={tmp_path}",
        "--log.level=error",
    ]

    def page() -> str:
        url = f"http://127.0.0.1:{port}/metrics"
        with suppress(URLError, ConnectionError), urlopen(url, timeout=TIMEOUT_S) as answer:
            return str(answer.read().decode())
        return ""

    with running(command):
        served = wait_for(page, "a page")
    found = _of_operators(served)
    assert found == _of_operators((tmp_path / "opscope.prom").read_text())
    assert len(found) > 50
    assert "node_textfile_scrape_error 0" in served


def _of_operators(page: str) -> dict[tuple[object, ...], float]:
    # It writes the bound 1.0 as 1.
    return {
        (
            sample.name,
            float(sample.labels.pop("le", "0")),
            *sorted(sample.labels.items()),
        ): sample.value
        for family in parse(page)
        for sample in family.samples
        if sample.name.startswith("opscope_op_")
    }
