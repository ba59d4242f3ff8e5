"""Ledger entries can be written under difficult conditions, and read back complete."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from opscope.attachment import ledger
from opscope.config import Config, load


def into(directory: Path) -> Config:
    return load({"OPSCOPE_DIR": str(directory)}, "/none")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path


@pytest.fixture
def fallback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "fallback"
    monkeypatch.setattr(ledger, "FALLBACK", str(place) + "-{uid}")
    return tmp_path / f"fallback-{os.geteuid()}"


def test_an_entry_is_read_as_it_was_written(own: Path) -> None:
    before = int(time.time())
    assert ledger.write(into(own), "denied", "pip: deny list")
    (entry,) = ledger.read_all([str(own)])
    start = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    assert (entry.pid, entry.process_start) == (os.getpid(), start)
    assert before <= entry.utc_seconds <= time.time()
    assert (entry.code, entry.text) == ("denied", "pip: deny list")
    assert entry.path == str(own / f"{os.getpid()}-{start}.why")


def test_a_later_reason_replaces_the_earlier(own: Path) -> None:
    ledger.write(into(own), "error", "first")
    ledger.write(into(own), "bridge", "second")
    assert [entry.code for entry in ledger.read_all([str(own)])] == ["bridge"]
    assert len(os.listdir(own)) == 1


def test_an_entry_fits_into_an_inode_whatever_the_text(own: Path) -> None:
    assert ledger.write(into(own), "error", "a\nb\x1b[31m\ud800" + "é" * 500)
    (entry,) = ledger.read_all([str(own)])
    assert len(os.readlink(os.fsencode(entry.path))) <= 127
    assert entry.text.startswith("a b?[31m?éé")


def test_a_long_text_keeps_its_end(own: Path) -> None:
    ledger.write(into(own), "recorder", f"cannot record into /{'d' * 200}: no space")
    (entry,) = ledger.read_all([str(own)])
    assert entry.text.startswith("cannot record into /ddd")
    assert entry.text.endswith("ddd: no space")


def test_a_missing_directory_is_made_for_its_owner_alone(own: Path) -> None:
    assert ledger.write(into(own / "new"), "error", "")
    assert (own / "new").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("spoil", ["file", "writable by others", "link", "no parent"])
def test_an_untrusted_directory_selects_the_fallback(own: Path, fallback: Path, spoil: str) -> None:
    place = own / "segments"
    if spoil == "file":
        place.touch()
    elif spoil == "writable by others":
        place.mkdir()
        place.chmod(0o777)
    elif spoil == "link":
        (own / "elsewhere").mkdir(mode=0o700)
        place.symlink_to(own / "elsewhere")
    else:
        place = own / "none" / "segments"
    assert ledger.write(into(place), "error", spoil)
    assert ledger.read_all([str(place)]) == []
    assert [e.text for e in ledger.read_all(ledger.places(str(place)))] == [spoil]
    assert fallback.stat().st_mode & 0o777 == 0o700


def test_without_any_directory_nothing_is_raised(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "FALLBACK", str(own / "none" / "{uid}"))
    assert not ledger.write(None, "error", "")


def test_without_a_configuration_the_environment_says_where(
    own: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPSCOPE_DIR", str(own))
    monkeypatch.setenv("OPSCOPE_DEBUG", "1")
    ledger.write(None, "config", "bad")
    assert [entry.text for entry in ledger.read_all([str(own)])] == ["bad"]
    assert capsys.readouterr().err == "opscope: config: bad\n"


def test_links_of_another_form_are_skipped(own: Path) -> None:
    for name in ("1.why", "1-2-3.why", "x-y.why", "-1-2.why", "1-2.txt"):
        (own / name).symlink_to("1:error:text")
    for number, target in enumerate(("", "1", "1:error", "x:error:text", "/etc/passwd")):
        if target:
            (own / f"{number}-1.why").symlink_to(target)
    (own / "7-1.why").write_text("1:error:text")
    assert ledger.read_all([str(own), str(own / "none")]) == []


def test_control_characters_of_a_foreign_entry_do_not_reach_a_terminal(own: Path) -> None:
    os.symlink(b"1:\x1berror:\x9b\xff text", os.fsencode(own / "1-2.why"))
    (entry,) = ledger.read_all([str(own)])
    assert (entry.code + entry.text).isprintable()


def test_a_forgotten_entry_is_gone_and_may_be_forgotten_again(own: Path) -> None:
    ledger.write(into(own), "error", "")
    (entry,) = ledger.read_all([str(own)])
    ledger.forget(entry)
    ledger.forget(entry)
    assert ledger.read_all([str(own)]) == []
