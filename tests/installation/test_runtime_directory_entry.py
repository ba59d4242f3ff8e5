"""The systemd-tmpfiles entry: written by `install --system`, applied at once, and removed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from opscope import config
from opscope.cli import install, uninstall
from opscope.errors import OpscopeError
from opscope.installation import choice, path_file, runtime_directory
from opscope.installation.interruption import Interruption

SYSTEM = choice.Chosen(system=True, venvs=(), payload=None)


@pytest.fixture
def entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In place of the host's; with a systemd-tmpfiles that makes the directory alone."""
    path, made = tmp_path / "etc" / "opscope.conf", tmp_path / "shm"
    program = tmp_path / "bin" / "systemd-tmpfiles"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\nmkdir -p {made}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setattr(runtime_directory, "PATH", str(path))
    monkeypatch.setattr(config, "RUNTIME_DIRECTORY", str(made))
    return path


def test_the_entry_and_the_directory_are_created_and_removed(entry: Path, tmp_path: Path) -> None:
    assert str(entry) in runtime_directory.put()
    assert entry.read_text() == runtime_directory.text()
    assert (tmp_path / "asked").read_text() == f"--create {entry}\n"
    assert (tmp_path / "shm").is_dir()
    assert runtime_directory.put() == ""
    assert str(entry) in runtime_directory.take()
    assert not entry.exists()
    assert not (tmp_path / "shm").exists()
    assert runtime_directory.take() == ""


def test_a_directory_with_segments_stays(entry: Path, tmp_path: Path) -> None:
    runtime_directory.put()
    (tmp_path / "shm" / "opscope-0").mkdir()
    runtime_directory.take()
    assert (tmp_path / "shm" / "opscope-0").is_dir()


def test_a_file_written_by_others_stays(entry: Path) -> None:
    entry.parent.mkdir()
    entry.write_text("d /elsewhere\n")
    assert (runtime_directory.put(), runtime_directory.take()) == ("", "")
    assert entry.read_text() == "d /elsewhere\n"


def test_without_systemd_tmpfiles_nothing_is_written(
    entry: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert runtime_directory.put() == ""
    assert not entry.parent.exists()


def test_a_failed_creation_leaves_nothing(entry: Path, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "systemd-tmpfiles"
    program.write_text("#!/bin/sh\necho no such group >&2\nexit 1\n")
    with pytest.raises(OpscopeError, match="no such group"):
        runtime_directory.put()
    assert not entry.exists()


def test_it_is_the_entry_that_is_deployed_by_hand() -> None:
    by_hand = Path(__file__).parents[2] / "agent" / "deploy" / "tmpfiles.conf"
    assert by_hand.read_text().splitlines()[-1] == runtime_directory.text().splitlines()[-1]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root prepares a directory for all")
@pytest.mark.parametrize("is_interrupted", [False, True])
def test_install_for_the_system_writes_it_and_uninstall_removes_it(
    entry: Path, monkeypatch: pytest.MonkeyPatch, is_interrupted: bool
) -> None:
    here = choice.Chosen(system=False, venvs=(), payload=None).environments()[0]
    monkeypatch.setattr(choice.Chosen, "environments", lambda *_: [here._replace(refusal="")])
    monkeypatch.setattr(install, "_refuse_others", lambda *_: None)
    monkeypatch.setattr(install, "_install", lambda *_: "installed")
    monkeypatch.setattr(path_file, "read", lambda _: None)
    monkeypatch.setattr(path_file, "take", lambda _: True)
    with Interruption() as interruption:
        if is_interrupted:
            put = runtime_directory.put

            def put_and_interrupt() -> str:
                interruption._waiting = 2
                return put()

            monkeypatch.setattr(runtime_directory, "put", put_and_interrupt)
            with pytest.raises(BaseException, match="SIGINT"):
                install._install_all(SYSTEM, interruption)
            assert not entry.exists()
            return
        said, errors = install._install_all(SYSTEM, interruption)
        assert (said[0], errors) == ("installed", [])
        assert entry.exists()
        uninstall._uninstall_all(SYSTEM, interruption)
        assert not entry.exists()
