"""Recordings: their contents, the selection of processes, and the validation of files."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from opscope.cli._group import main
from opscope.errors import AgentError
from opscope.reports.recording import Operator, Recording, Selection, Slice, record
from opscope.segments import layout
from tests.segments.segment_writer import Range, SegmentWriter

ADD = Operator("numpy::add", "forward")


class Service:
    """A process whose segment grows by the same ranges in every slice."""

    def __init__(self, place: Path, name: str, version: str = "", call_s: float = 1e-3) -> None:
        self.place, self.call_s = place, call_s
        self.writer = SegmentWriter()
        self.writer.note("service.name", name)
        if version:
            self.writer.note("service.version", version)
        self.work()

    def work(self) -> None:
        self.writer.add([Range(ADD.name, self.call_s, 10, self_s=self.call_s / 2)])
        self.writer.write(self.place)


def recorded(place: Path, *services: Service, which: str = "", slices: int = 6) -> Recording:
    def work(_: float) -> None:
        for service in services:
            service.work()

    selection = Selection.parse(which) if which else Selection()
    (made,) = record([str(place)], [selection], slices=slices, slice_s=1.0, sleep=work)
    return made


def test_a_recording_has_the_increase_of_each_slice(tmp_path: Path) -> None:
    made = recorded(tmp_path, Service(tmp_path, "svc"))
    assert made.processes == 1
    assert len(made.seconds) == 6
    (slices,) = made.operators.values()
    assert [(one.samples, one.calls) for one in slices] == [(10, 10.0)] * 6
    assert [one.total_s for one in slices] == pytest.approx([0.01] * 6)
    assert [one.self_s for one in slices] == pytest.approx([0.005] * 6)


@pytest.mark.parametrize(
    ("which", "calls"), [("", 120.0), ("svc", 120.0), ("svc@1", 60.0), ("svc@2", 60.0)]
)
def test_processes_are_selected_by_service_and_version(
    tmp_path: Path, which: str, calls: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = Service(tmp_path, "svc", "1"), Service(tmp_path, "svc", "2")
    services[1].writer.process.pid = 1
    services[1].writer.process.process_start = 2
    for path in tmp_path.iterdir():
        path.unlink()
    monkeypatch.setattr("opscope.segments.liveness.is_dead", lambda *_: False)
    for service in services:
        service.work()
    made = recorded(tmp_path, *services, which=which)
    assert sum(one.calls for one in made.operators[ADD]) == calls


def test_an_unknown_service_is_an_error_that_names_the_running_ones(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match=r"matches other@3; observed: svc@1; `opscope ps`"):
        recorded(tmp_path, Service(tmp_path, "svc", "1"), which="other@3")
    with pytest.raises(AgentError, match=r"^no process is observed; `opscope ps`"):
        recorded(tmp_path / "nothing")


def test_missing_services_are_reported_before_the_wait(tmp_path: Path) -> None:
    def sleep(_: float) -> None:
        raise AssertionError("waited")

    with pytest.raises(AgentError, match="observed: none"):
        record([str(tmp_path)], [Selection("svc")], slices=5, slice_s=1.0, sleep=sleep)


def test_a_process_that_ended_before_is_not_recorded(tmp_path: Path) -> None:
    ended = SegmentWriter(liveness=layout.LIVENESS_LOCK)
    ended.note("service.name", "svc")
    ended.add([Range(ADD.name, 1e-3, 10)]).write(tmp_path)
    with pytest.raises(AgentError, match="observed: none"):
        recorded(tmp_path, which="svc")


def test_a_file_reads_back_unchanged(tmp_path: Path) -> None:
    slices = (Slice(1, 2.5, 0.25, None), Slice(0, 0.0, 0.0, 0.0))
    made = Recording("svc", 10**18, (1.0, 2.0), 3, {ADD: slices})
    path = tmp_path / "a.recording"
    made.save(str(path))
    assert Recording.load(str(path)) == made
    assert list(tmp_path.iterdir()) == [path]


def good() -> dict[str, Any]:
    one = {"name": "op", "phase": "other", "slices": [[1, 1.0, 0.5, None]]}
    return {
        "format": "opscope recording",
        "version": 1,
        "what": "svc",
        "started_unix_ns": 1,
        "seconds": [1.0],
        "processes": 1,
        "operators": [one],
    }


@pytest.mark.parametrize(
    "change",
    [
        {"format": "another"},
        {"version": 2},
        {"seconds": [1.0, 1.0]},
        {"seconds": [0.0]},
        {"seconds": ["1"]},
        {"processes": -1},
        {"processes": float("nan")},
        {"operators": [{"name": "op", "phase": "other", "slices": [[1]]}]},
        {"operators": [{"name": "op", "phase": "other", "slices": [[1, True, 0.0, None]]}]},
        {"operators": [{"name": "op"}]},
        {"operators": 5},
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, change: dict[str, Any]) -> None:
    path = tmp_path / "a"
    path.write_bytes(gzip.compress(json.dumps(good()).encode()))
    assert Recording.load(str(path)).operators
    path.write_bytes(gzip.compress(json.dumps({**good(), **change}).encode()))
    with pytest.raises(AgentError, match="is not a recording"):
        Recording.load(str(path))


@pytest.mark.parametrize(
    "raw", [b"", b"text", gzip.compress(b"{", mtime=0)[:-4], gzip.compress(b"[1]", mtime=0)]
)
def test_other_files_are_refused(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "a"
    path.write_bytes(raw)
    with pytest.raises(AgentError, match="opscope record -o FILE writes one"):
        Recording.load(str(path))


def saved(path: Path, call_s: float) -> str:
    slices = (Slice(100, 100.0, 100 * call_s, 100 * call_s),) * 6
    Recording("svc", 0, (1.0,) * 6, 1, {ADD: slices}).save(str(path))
    return str(path)


def diff(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "80"}).invoke(main, ("diff", *arguments))


def test_diff_shows_slower_operators_within_the_terminal(tmp_path: Path) -> None:
    a, b = saved(tmp_path / "a", 1e-3), saved(tmp_path / "b", 2e-3)
    result = diff(a, b)
    assert result.exit_code == 0
    (row,) = (line for line in result.output.splitlines() if line.startswith("numpy::add"))
    assert "2.00" in row and "slower" in row and "+10.0 %" in row
    assert max(map(len, result.output.splitlines())) <= 80
    assert "1 slower, 0 faster" in result.output


def test_diff_for_scripts_says_the_same_and_check_fails(tmp_path: Path) -> None:
    a, b = saved(tmp_path / "a", 1e-3), saved(tmp_path / "b", 2e-3)
    result = diff(a, b, "--json", "--check")
    assert result.exit_code == 1
    (operator,) = json.loads(result.output)["operators"]
    assert (operator["verdict"], operator["ratio"]) == ("slower", pytest.approx(2.0))
    assert diff(b, a, "--check").exit_code == 0


def test_diff_says_that_there_is_nothing_to_compare(tmp_path: Path) -> None:
    path = tmp_path / "empty"
    Recording("svc", 0, (1.0,) * 6, 1, {}).save(str(path))
    assert "no operator ran in both" in diff(str(path), str(path)).output


def test_diff_takes_a_path_for_a_file(tmp_path: Path) -> None:
    result = diff(saved(tmp_path / "a", 1.0), str(tmp_path / "missing"))
    assert result.exit_code == 1
    assert "missing: no such file; `opscope record -o FILE` writes one" in result.output


def test_diff_reports_a_name_that_is_neither_file_nor_service(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = diff(saved(tmp_path / "a", 1.0), "svc@9", "--directory", str(tmp_path / "empty"))
    assert result.exit_code == 1
    assert "no observed process matches svc@9" in result.output
