"""The file for node_exporter's collector: whole at any moment, and what the page is."""

import os
from pathlib import Path

import pytest

from opscope.agent.exporter import PushExporter, load
from opscope.bench.scrape import snapshot_of
from opscope.errors import AgentError, ConfigError
from opscope_exporters.prometheus import Prometheus


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
            assert path.read_bytes() == Prometheus().page(snapshot_of(3, seed), "")[0]
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o644
    assert [found.name for found in tmp_path.iterdir()] == ["opscope.prom"]
    exporter.close()
    assert path.exists()


def test_a_file_that_cannot_be_replaced_is_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "opscope.prom"
    exporter = textfile(path)
    path.mkdir()
    with pytest.raises(AgentError, match=r"opscope\.prom cannot be written: Is a directory"):
        exporter.export(snapshot_of(1, 0))
    assert [found.name for found in tmp_path.iterdir()] == ["opscope.prom"]


def test_a_link_that_lies_in_the_way_is_not_followed(tmp_path: Path) -> None:
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
