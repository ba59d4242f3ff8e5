"""A directory prepared by root is used if it is safe; names in it do not stay taken."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from opscope import config
from opscope.cli import agent as agent_command
from opscope.host.host import Host
from opscope.segments import directories
from tests.segments.segment_writer import Process, Range, SegmentWriter

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="makes files of other users")

OTHER = 4242


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Replaces /dev/shm/opscope, created as by tmpfiles.conf."""
    path = tmp_path / "shm" / "opscope"
    path.mkdir(parents=True)
    path.chmod(0o1777)
    monkeypatch.setattr(config, "RUNTIME_DIRECTORY", str(path))
    return path


def default() -> str:
    return config.load({}, "/nothing").directory


def test_a_safe_one_is_used(runtime: Path) -> None:
    assert default() == f"{runtime}/opscope-{os.geteuid()}"


def _missing(path: Path) -> None:
    path.rmdir()


def _of_another(path: Path) -> None:
    os.chown(path, OTHER, -1)


def _open_to_all(path: Path) -> None:
    path.chmod(0o777)


def _closed(path: Path) -> None:
    path.chmod(0o755)


def _a_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def _a_file(path: Path) -> None:
    path.rmdir()
    path.write_text("")


@pytest.mark.parametrize("spoil", [_missing, _of_another, _open_to_all, _closed, _a_link, _a_file])
def test_another_is_not(runtime: Path, spoil: Callable[[Path], None]) -> None:
    spoil(runtime)
    assert default() == f"{runtime.parent}/opscope-{os.geteuid()}"


def test_a_taken_name_selects_the_other_directory(runtime: Path) -> None:
    mine = runtime / f"opscope-{os.geteuid()}"
    mine.mkdir()
    os.chown(mine, OTHER, -1)
    assert default() == f"{runtime.parent}/opscope-{os.geteuid()}"
    os.chown(mine, os.geteuid(), -1)
    assert default() == str(mine)


def test_root_s_agent_reads_both_places_and_gives_taken_names_back(runtime: Path) -> None:
    for parent, op in ((runtime, "new"), (runtime.parent, "old")):
        directory = parent / "opscope-7777"
        directory.mkdir(mode=0o700)
        path = SegmentWriter(Process(), uid=7777).add([Range(op, 1e-3)]).write(directory)
        for one in (directory, path):
            os.chown(one, 7777, -1)
    taken = runtime / "opscope-1234"
    taken.mkdir()
    os.chown(taken, OTHER, -1)
    (runtime / "opscope-1235").symlink_to("opscope-7777")
    os.mkfifo(runtime / "opscope-1236")
    left_alone = runtime.parent / "opscope-1234"
    left_alone.mkdir()
    os.chown(left_alone, OTHER, -1)
    host = Host(directories.patterns(default()), consume=True)
    assert {key.op for key in host.collect().keys} == {"new", "old"}
    left = sorted(path.name.partition("-")[0] for path in runtime.iterdir())
    assert left == ["opscope", "taken", "taken", "taken"]
    assert left_alone.exists()


def test_a_tool_that_only_reads_renames_nothing(runtime: Path) -> None:
    taken = runtime / "opscope-1234"
    taken.mkdir()
    os.chown(taken, OTHER, -1)
    Host(directories.patterns(default()), consume=False).collect()
    assert taken.exists()


def test_the_agent_s_state_goes_elsewhere_where_root_s_name_is_taken(tmp_path: Path) -> None:
    squats: list[Callable[[Path], None]] = [Path.mkdir, Path.touch, os.mkfifo]
    for number, squat in enumerate(squats):
        path = tmp_path / str(number) / "opscope-0"
        path.parent.mkdir()
        squat(path)
        os.chown(path, OTHER, -1)
        settings = config.load({"OPSCOPE_DIR": str(path)}, "/nothing")
        state = agent_command._state(settings, ())
        assert state is not None and state.path == "/run/opscope/agent.state"
        os.chown(path, 0, -1)
        state = agent_command._state(settings, ())
        assert state is not None and state.path == f"{path}/agent.state"
