"""The controller: its writes into a control block, and what it leaves unchanged."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opscope._native import lib
from opscope.control import control_block, control_many
from opscope.control.control_block import Answer, ControlError, FoundProcess
from opscope.host import budgets, pid_namespaces
from opscope.host.pid_namespaces import Inner
from opscope.record.settings_change import ALONE, ENABLED, SAMPLING, SettingsChange, parse
from opscope.segments import layout
from tests.segments.segment_writer import Process, SegmentWriter


def _write_segment(directory: Path) -> Path:
    writer = SegmentWriter()
    writer.note("service.name", "web")
    path = directory / writer.process.file_name
    path.write_bytes(writer.to_bytes())
    path.chmod(0o600)
    return path


@pytest.fixture
def found(tmp_path: Path) -> FoundProcess:
    """A segment of this process without a reader."""
    tmp_path.chmod(0o700)
    _write_segment(tmp_path)
    (one,) = control_block.find([str(tmp_path)])
    assert (one.pid, one.service) == (os.getpid(), "web")
    return one


def _block(found: FoundProcess) -> np.void:
    raw = Path(found.path).read_bytes()
    block: np.void = np.frombuffer(raw, layout.CONTROL, 1, layout.CONTROL_OFFSET)[0]
    return block


def _patch(found: FoundProcess, offset: int, value: int) -> None:
    with open(found.path, "r+b") as file:
        file.seek(offset)
        file.write(value.to_bytes(8, "little"))


def _set(found: FoundProcess, change: SettingsChange) -> None:
    with control_block.opened(found) as segment:
        segment.set(change)


def test_a_pid_that_several_containers_have_names_none_of_them(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    for start in (5, 6):
        writer = SegmentWriter(Process(pid=1, process_start=start, pid_namespace=start))
        writer.note("service.name", f"service{start}")
        writer.write(tmp_path)
    live = control_block.find([str(tmp_path)])
    assert [one.pid for one in live] == [1, 1]
    with pytest.raises(ControlError, match=r"pid 1: .*service5, service6.*by --service"):
        control_block.by_pid(live, 1)
    assert control_block.by_pid(live[:1], 1) == live[:1]
    assert control_block.by_pid(live, 2) == []


def test_a_process_of_a_container_has_the_pid_that_it_has_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    SegmentWriter(Process(pid=1, process_start=5, pid_namespace=6)).write(tmp_path)
    monkeypatch.setattr(pid_namespaces, "look_into", {os.getpid(): Inner(6, 1, 5)}.get)
    (found,) = control_block.find([str(tmp_path)])
    assert (found.pid, found.header.pid) == (os.getpid(), 1)


def test_a_change_is_written_to_the_block_and_changes_nothing_else(found: FoundProcess) -> None:
    before = Path(found.path).read_bytes()
    _set(found, parse(["sampling=0.25", "labels=a,b"]))
    block = _block(found)
    assert (block["serial"], block["settings_serial"]) == (2, 1)
    assert (block["given"], block["sampling_prob_ppt"]) == (SAMPLING | 16, 250_000_000_000)
    assert block["label_keys"] == b"a,b"
    after = Path(found.path).read_bytes()
    start, end = layout.CONTROL_OFFSET, layout.CONTROL_OFFSET + layout.CONTROL.itemsize
    assert (after[:start], after[end:]) == (before[:start], before[end:])


def test_a_later_change_keeps_what_it_does_not_name(found: FoundProcess) -> None:
    _set(found, parse(["sampling=0.25", "labels=a"]))
    _set(found, parse(["enabled=false"]))
    with control_block.opened(found) as segment:
        assert segment.requested().words() == ["sampling=0.25", "labels=a", "enabled=false"]
    _set(found, SettingsChange(given=ALONE))
    with control_block.opened(found) as segment:
        assert segment.requested() == SettingsChange(given=ALONE)
    _set(found, parse(["sampling=windows"]))
    assert _block(found)["given"] == ALONE | 4
    assert (_block(found)["serial"], _block(found)["settings_serial"]) == (8, 4)


def test_a_block_left_by_a_killed_controller_is_repaired(found: FoundProcess) -> None:
    _patch(found, layout.CONTROL_OFFSET, 7)
    _set(found, parse(["enabled=true"]))
    assert _block(found)["serial"] == 8


def test_a_request_for_a_trace_is_left_as_it_is(found: FoundProcess) -> None:
    _patch(found, layout.CONTROL_OFFSET + layout.CONTROL.fields["trace_serial"][1], 3)  # type: ignore[index]
    _set(found, parse(["enabled=true"]))
    assert _block(found)["trace_serial"] == 3


def test_a_missing_answer_is_reported(found: FoundProcess) -> None:
    (outcome,) = control_many.set_all([found], parse(["sampling=1"]), 0.0)
    assert (outcome.done, outcome.text) == (
        False,
        "pending: applies when the process runs its next operator",
    )


def test_answers_have_a_text() -> None:
    assert Answer(3, 3, 0, 0).text() == "in force"
    refused = Answer(3, 3, -lib.OPSCOPE_ERR_INVALID, SAMPLING)
    assert refused.is_refused
    assert refused.text().startswith("refused, nothing changed: sampling: ")
    assert "unknown" in Answer(3, 3, 1 << 63, 1 << 63).text()
    assert Answer(3, 2, 9, 9).is_pending


def _gone(path: Path) -> None:
    path.unlink()


def _link(path: Path) -> None:
    path.rename(path.with_suffix(".moved"))
    path.symlink_to(path.with_suffix(".moved"))


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _two_names(path: Path) -> None:
    os.link(path, path.with_suffix(".second"))


def _closed(path: Path) -> None:
    with open(path, "r+b") as file:
        file.seek(layout.HEADER.fields["state"][1])  # type: ignore[index]
        file.write(layout.CLOSED.to_bytes(4, "little"))


def _short(path: Path) -> None:
    os.truncate(path, 1000)


def _other(path: Path) -> None:
    """Another segment under that name."""
    path.unlink()
    _write_segment(path.parent).rename(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_gone, "it has ended"),
        (_link, "is not a regular file: not touched"),
        (_fifo, "is not a regular file"),
        (_directory, "is not a regular file"),
        (_two_names, "is linked under 2 names: not touched"),
        (_closed, "its recorder has stopped"),
        (_short, "is not a segment any more: truncated"),
        (_other, "its recorder has stopped"),
    ],
)
def test_a_file_that_is_no_segment_of_its_owner_is_left_alone(
    found: FoundProcess, change: Callable[[Path], None], said: str
) -> None:
    change(Path(found.path))
    with pytest.raises(ControlError, match=f"pid {found.pid}: ") as caught:
        _set(found, parse(["enabled=false"]))
    assert said in str(caught.value)
    (outcome,) = control_many.set_all([found], parse(["enabled=false"]), 0.0)
    assert not outcome.done and said in outcome.text


def test_a_header_of_another_user_is_left_alone(found: FoundProcess) -> None:
    forged = found._replace(header=found.header._replace(uid=4711))
    with pytest.raises(ControlError, match=r"but names uid 4711: not touched"):
        _set(forged, parse(["enabled=false"]))


def test_other_users_learn_who_may_change_settings(
    found: FoundProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str, flags: int, **options: Any) -> int:
        if str(name).endswith(".seg"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return opened(name, flags, **options)

    opened = os.open
    monkeypatch.setattr(os, "open", refuse)
    who = f"it belongs to uid {os.geteuid()}: only its owner and root can change its settings"
    with pytest.raises(ControlError, match=who):
        _set(found, parse(["enabled=false"]))


_HOLDER = """
import fcntl, os, sys
for path in sys.argv[1:]:
    fcntl.lockf(os.open(path, os.O_RDWR), fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_block_that_another_controller_holds_is_left_alone(found: FoundProcess) -> None:
    with _held(found):
        with pytest.raises(ControlError, match="another opscope holds its control block"):
            _set(found, parse(["enabled=false"]))
        assert _block(found)["serial"] == 0
    _set(found, parse(["enabled=false"]))
    assert _block(found)["serial"] == 2


@contextmanager
def _held(*found: FoundProcess) -> Iterator[None]:
    """Another process holds these locks meanwhile."""
    command = [sys.executable, "-c", _HOLDER, *(one.path for one in found)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        yield
        holder.communicate()


def _several(directory: Path, count: int) -> list[FoundProcess]:
    directory.chmod(0o700)
    for _ in range(count):
        _write_segment(directory)
    return control_block.find([str(directory)])


def test_held_locks_share_one_deadline(tmp_path: Path) -> None:
    """With a simulated clock: five held locks cost as much time as one."""
    several = _several(tmp_path, 6)
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    def change(_: int, segment: control_block.Segment) -> None:
        segment.set(parse(["enabled=false"]))

    with _held(*several[:5]):
        failures = control_many.change_all(several, change, clock=lambda: now[0], sleep=sleep)
    assert [bool(why) for why in failures] == [True] * 5 + [False]
    assert now[0] <= control_many.LOCK_WAIT_S + 0.1
    assert _block(several[5])["enabled"] == 0


def test_a_released_lock_is_taken(tmp_path: Path) -> None:
    (found,) = _several(tmp_path, 1)
    with ExitStack() as stack:
        stack.enter_context(_held(found))
        failures = control_many.change_all(
            [found],
            lambda _, segment: segment.set(parse(["enabled=false"])),
            clock=lambda: 0.0,
            sleep=lambda _: stack.close(),
        )
    assert failures == [""]


def test_a_block_of_all_ones_can_be_set(tmp_path: Path) -> None:
    several = _several(tmp_path, 3)
    with open(several[0].path, "r+b") as file:
        file.seek(layout.CONTROL_OFFSET)
        file.write(b"\xff" * (layout.CONTROL.itemsize + layout.ANSWER.itemsize))
    outcomes = control_many.set_all(several, parse(["enabled=false"]), 0.0)
    for found, outcome in zip(several, outcomes, strict=True):
        assert control_block.UNFORESEEN not in outcome.text
        assert _block(found)["enabled"] == 0
        assert _block(found)["given"] == ENABLED
    with control_block.opened(several[0]) as segment:
        assert segment.requested().words() == ["enabled=false"]


def test_an_unexpected_error_affects_only_its_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    several = _several(tmp_path, 3)
    real = control_block.Segment.set

    def fail(self: control_block.Segment, change: SettingsChange) -> None:
        if self.found.path == several[1].path:
            raise OverflowError("too large")
        real(self, change)

    monkeypatch.setattr(control_block.Segment, "set", fail)
    outcomes = control_many.set_all(several, parse(["enabled=false"]), 0.0)
    assert [control_block.UNFORESEEN in outcome.text for outcome in outcomes] == [
        False,
        True,
        False,
    ]
    assert [_block(found)["serial"] for found in several] == [2, 0, 2]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("given", 64),
        ("sampling_prob_ppt", 10**12 + 1),
        ("window_ns", 1 << 63),
        ("period_ns", 1 << 63),
        ("max_overhead_ppb", 10**9 + 1),
    ],
)
def test_a_block_that_no_controller_wrote_has_no_settings(
    found: FoundProcess, field: str, value: int
) -> None:
    _set(found, parse(["sampling=0.5"]))
    _patch(found, layout.CONTROL_OFFSET + layout.CONTROL.fields[field][1], value)  # type: ignore[index]
    with control_block.opened(found) as segment:
        assert segment.requested() == SettingsChange()


def test_ended_processes_and_damaged_files_are_not_found(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    _closed(_write_segment(tmp_path))
    (tmp_path / "1-2-0123456789abcdef.seg").write_bytes(b"junk")
    (tmp_path / "settings").write_text("")
    assert control_block.find([str(tmp_path), str(tmp_path / "none")]) == []


def test_files_of_one_user_do_not_hide_those_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budgets, "SECONDS", -1.0)
    for user in (0, 4242):
        directory = tmp_path / str(user)
        directory.mkdir(mode=0o700)
        for _ in range(3):
            os.chown(_write_segment(directory), user, -1)
        os.chown(directory, user, -1)
    problems: list[str] = []
    live = control_block.find([f"{tmp_path}/*"], problems)
    assert sorted(Path(one.path).parent.name for one in live) == ["0", "4242"]
    assert len(problems) == 2
