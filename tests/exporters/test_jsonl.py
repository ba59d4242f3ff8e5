"""JSON lines: one line per series, complete lines only, in files of bounded size."""

import errno
import json
import os
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from opscope.bench.scrape import snapshot_of
from opscope.errors import AgentError, ConfigError
from opscope.server.exporter import PushExporter, load


def jsonl(**options: object) -> PushExporter:
    exporter = load("jsonl", options, {})
    assert isinstance(exporter, PushExporter)
    return exporter


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_line_has_all_values_of_a_series(tmp_path: Path) -> None:
    snapshot = replace(snapshot_of(3, 0), usage={("core.linalg", "training"): 2})
    path = tmp_path / "out.jsonl"
    jsonl(file=str(path)).export(snapshot)
    series = [line for line in lines(path) if "op" in line]
    assert [line["op"] for line in series] == [key.op for key in snapshot.keys]
    for row, line in enumerate(series):
        assert line["opscope.op.calls"] == snapshot.calls[row]
        assert line["opscope.op.duration.sum"] == snapshot.total_s[row]
        assert line["opscope.op.duration.p95"] == snapshot.quantile(0.95)[row]
        assert line["start_time"] == "2023-11-14T22:13:20.000000000Z"
        assert line["time"] == "2023-11-14T22:13:20.000000001Z"
        assert (line["service_name"], line["model_id"]) == (f"service-{row}", "m")
    (usage,) = [line for line in lines(path) if "opscope.api.usage" in line]
    assert (usage["api"], usage["service_name"], usage["opscope.api.usage"]) == (
        "core.linalg",
        "training",
        2,
    )


def test_a_label_does_not_replace_a_field_of_the_line(tmp_path: Path) -> None:
    names = ("host", "time", "start_time")
    whole = snapshot_of(1, 0)
    labels = tuple((name, f"of {name}") for name in names)
    key = whole.keys[0]._replace(labels=labels)
    resource = key._replace(group="g", labels=())
    path = tmp_path / "out.jsonl"
    jsonl(file=str(path)).export(replace(whole, keys=(key,)))
    jsonl(file=str(path)).export(replace(whole, keys=(resource,), groups={"g": labels}))
    of_series, of_resource = [line for line in lines(path) if "label_host" in line]
    assert of_series["start_time"] == "2023-11-14T22:13:20.000000000Z"
    for line in (of_series, of_resource):
        assert line["time"] == "2023-11-14T22:13:20.000000001Z"
        assert line["host"] == socket.gethostname()
        assert {name: line[f"label_{name}"] for name in names} == dict(labels)


def test_a_file_is_rotated_and_the_oldest_goes(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    exporter = jsonl(file=str(path), max_mib=0.001, keep=2)
    for seed in range(5):
        exporter.export(snapshot_of(2, seed))
    names = sorted(found.name for found in tmp_path.iterdir())
    assert names == ["out.jsonl", "out.jsonl.1", "out.jsonl.2"]
    for name, seed in (("out.jsonl", 4), ("out.jsonl.1", 3), ("out.jsonl.2", 2)):
        first = lines(tmp_path / name)[0]
        assert first["opscope.op.samples"] == snapshot_of(2, seed).samples[0]


def test_small_snapshots_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    exporter = jsonl(file=str(path))
    for _ in range(3):
        exporter.export(snapshot_of(1, 0))
    assert sum("op" in line for line in lines(path)) == 3
    assert len(list(tmp_path.iterdir())) == 1


def test_standard_output_takes_whole_lines(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    jsonl().export(snapshot_of(2, 0))
    said = capfdbinary.readouterr().out
    assert said.endswith(b"}\n")
    assert all(json.loads(line) for line in said.splitlines())


def test_a_full_disk_leaves_no_partial_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.jsonl"
    exporter = jsonl(file=str(path))
    exporter.export(snapshot_of(1, 0))
    before = path.read_bytes()
    write = os.write

    def write_half(fd: int, text: memoryview) -> int:
        if len(text) < 1000:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(fd, text[: len(text) // 2])

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", write_half)
        with pytest.raises(AgentError, match=r"cannot write .*: No space left"):
            exporter.export(snapshot_of(3, 0))
    assert path.read_bytes() == before
    with pytest.raises(AgentError, match="cannot write /dev/full: No space left"):
        jsonl(file="/dev/full").export(snapshot_of(2, 0))


def test_a_relative_path_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"file='out\.jsonl': must be absolute"):
        jsonl(file="out.jsonl")
