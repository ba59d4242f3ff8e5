"""The controller: what it writes into a control block, and what it leaves alone."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opscope._native import lib
from opscope.agent import control, layout, pid_namespaces
from opscope.agent.control import Answer, ControlError, Found
from opscope.agent.pid_namespaces import Inner
from opscope.record.wish import ALONE, SAMPLING, Wish, parse
from tests.agent.segment_writer import Process, SegmentWriter


def _write_segment(directory: Path) -> Path:
    writer = SegmentWriter()
    writer.note("service.name", "web")
    path = directory / writer.process.file_name
    path.write_bytes(writer.to_bytes())
    path.chmod(0o600)
    return path


@pytest.fixture
def found(tmp_path: Path) -> Found:
    """A segment of this process that nobody reads."""
    tmp_path.chmod(0o700)
    _write_segment(tmp_path)
    (one,) = control.find([str(tmp_path)])
    assert (one.pid, one.service) == (os.getpid(), "web")
    return one


def _block(found: Found) -> np.void:
    raw = Path(found.path).read_bytes()
    block: np.void = np.frombuffer(raw, layout.CONTROL, 1, layout.CONTROL_OFFSET)[0]
    return block


def _patch(found: Found, offset: int, value: int) -> None:
    with open(found.path, "r+b") as file:
        file.seek(offset)
        file.write(value.to_bytes(8, "little"))


def _set(found: Found, wish: Wish) -> None:
    with control.opened(found) as segment:
        segment.set(wish)


def test_a_pid_that_several_containers_have_names_none_of_them(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    for start in (5, 6):
        writer = SegmentWriter(Process(pid=1, process_start=start, pid_namespace=start))
        writer.note("service.name", f"service{start}")
        writer.write(tmp_path)
    live = control.find([str(tmp_path)])
    assert [one.pid for one in live] == [1, 1]
    with pytest.raises(ControlError, match=r"pid 1: .*service5, service6.*by --service"):
        control.by_pid(live, 1)
    assert control.by_pid(live[:1], 1) == live[:1]
    assert control.by_pid(live, 2) == []


def test_a_process_of_a_container_has_the_pid_that_it_has_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    SegmentWriter(Process(pid=1, process_start=5, pid_namespace=6)).write(tmp_path)
    monkeypatch.setattr(pid_namespaces, "look_into", {os.getpid(): Inner(6, 1, 5)}.get)
    (found,) = control.find([str(tmp_path)])
    assert (found.pid, found.header.pid) == (os.getpid(), 1)


def test_a_wish_stands_in_the_block_and_nothing_else_changes(found: Found) -> None:
    before = Path(found.path).read_bytes()
    _set(found, parse(["sampling=0.25", "labels=a,b"]))
    block = _block(found)
    assert (block["serial"], block["settings_serial"]) == (2, 1)
    assert (block["given"], block["sampling_prob_ppt"]) == (SAMPLING | 16, 250_000_000_000)
    assert block["label_keys"] == b"a,b"
    after = Path(found.path).read_bytes()
    start, end = layout.CONTROL_OFFSET, layout.CONTROL_OFFSET + layout.CONTROL.itemsize
    assert (after[:start], after[end:]) == (before[:start], before[end:])


def test_a_later_wish_keeps_what_it_does_not_name(found: Found) -> None:
    _set(found, parse(["sampling=0.25", "labels=a"]))
    _set(found, parse(["enabled=false"]))
    with control.opened(found) as segment:
        assert segment.wish().words() == ["sampling=0.25", "labels=a", "enabled=false"]
    _set(found, Wish(given=ALONE))
    with control.opened(found) as segment:
        assert segment.wish() == Wish(given=ALONE)
    _set(found, parse(["sampling=windows"]))
    assert _block(found)["given"] == ALONE | 4
    assert (_block(found)["serial"], _block(found)["settings_serial"]) == (8, 4)


def test_a_block_that_a_killed_controller_left_is_made_whole(found: Found) -> None:
    _patch(found, layout.CONTROL_OFFSET, 7)
    _set(found, parse(["enabled=true"]))
    assert _block(found)["serial"] == 8


def test_a_wish_for_a_trace_is_left_as_it_is(found: Found) -> None:
    _patch(found, layout.CONTROL_OFFSET + layout.CONTROL.fields["trace_serial"][1], 3)  # type: ignore[index]
    _set(found, parse(["enabled=true"]))
    assert _block(found)["trace_serial"] == 3


def test_no_answer_is_said_to_be_none(found: Found) -> None:
    (outcome,) = control.set_all([found], parse(["sampling=1"]), 0.0)
    assert (outcome.done, outcome.text) == (
        False,
        "not yet: no operator has run since; it hears at its next",
    )


def test_answers_are_told_in_words() -> None:
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
        (_link, "is not a regular file: left alone"),
        (_fifo, "is not a regular file"),
        (_directory, "is not a regular file"),
        (_two_names, "is there under 2 names: left alone"),
        (_closed, "its recorder has stopped"),
        (_short, "is no segment any more: truncated"),
        (_other, "its recorder has stopped"),
    ],
)
def test_what_is_no_segment_of_its_owner_is_left_alone(
    found: Found, change: Callable[[Path], None], said: str
) -> None:
    change(Path(found.path))
    with pytest.raises(ControlError, match=f"pid {found.pid}: ") as caught:
        _set(found, parse(["enabled=false"]))
    assert said in str(caught.value)
    (outcome,) = control.set_all([found], parse(["enabled=false"]), 0.0)
    assert not outcome.done and said in outcome.text


def test_a_header_of_another_user_is_left_alone(found: Found) -> None:
    forged = found._replace(header=found.header._replace(uid=4711))
    with pytest.raises(ControlError, match=r"and says uid 4711: left alone"):
        _set(forged, parse(["enabled=false"]))


def test_others_are_told_who_may(found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str, flags: int, **options: Any) -> int:
        if str(name).endswith(".seg"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return opened(name, flags, **options)

    opened = os.open
    monkeypatch.setattr(os, "open", refuse)
    who = f"it belongs to uid {os.geteuid()}: only its owner and root may set it"
    with pytest.raises(ControlError, match=who):
        _set(found, parse(["enabled=false"]))


_HOLDER = """
import fcntl, os, sys
fcntl.lockf(os.open(sys.argv[1], os.O_RDWR), fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_another_controller_is_waited_for(found: Found, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "_LOCK_WAIT_S", 0.0)
    command = [sys.executable, "-c", _HOLDER, found.path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(ControlError, match="another opscope has held its control block"):
            _set(found, parse(["enabled=false"]))
        assert _block(found)["serial"] == 0
        holder.communicate()
    _set(found, parse(["enabled=false"]))
    assert _block(found)["serial"] == 2


def test_dead_ones_and_bad_ones_are_not_found(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    _closed(_write_segment(tmp_path))
    (tmp_path / "1-2-0123456789abcdef.seg").write_bytes(b"junk")
    (tmp_path / "settings").write_text("")
    assert control.find([str(tmp_path), str(tmp_path / "none")]) == []
