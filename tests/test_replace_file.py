"""A file is replaced atomically, by one function, which every writer uses."""

import errno
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opscope.replace_file import remove_remains, replace_file

ROOT = Path(__file__).parent.parent
STEPS = ("open", "fchmod", "write", "fsync", "rename")


def inside(path: Path) -> list[str]:
    return sorted(os.listdir(path))


def test_a_file_is_created_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file"
    replace_file(str(path), b"first", mode=0o640)
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"first", 0o640)
    replace_file(str(path), b"second", mode=0o600, durable=True)
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"second", 0o600)
    assert inside(tmp_path) == ["file"]


def test_a_name_is_of_the_directory_that_is_given(tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)
    replace_file("file", b"content", directory_fd=fd, mode=0o600)
    os.close(fd)
    assert (tmp_path / "file").read_bytes() == b"content"


def test_mode_and_owner_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o604)
    if os.geteuid() == 0:
        os.chown(path, 12345, 23456)
    before = path.stat()
    replace_file(str(path), b"new")
    after = path.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode,
        before.st_uid,
        before.st_gid,
    )


def test_without_an_old_file_the_umask_decides(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        replace_file(str(tmp_path / "file"), b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    target, path = tmp_path / "target", tmp_path / "file"
    target.write_bytes(b"precious")
    path.symlink_to(target)
    replace_file(str(path), b"new", mode=0o600)
    assert (target.read_bytes(), path.read_bytes()) == (b"precious", b"new")
    assert not path.is_symlink()


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
def test_an_error_at_any_step_leaves_the_old_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    real: Callable[..., Any] = getattr(os, step)

    def fail(*args: Any, **kwargs: Any) -> Any:
        if step == "open" and not args[1] & os.O_CREAT:
            return real(*args, **kwargs)
        raise error

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(type(error)):
        replace_file(str(path), b"new", durable=True, mode=0o600)
    monkeypatch.undo()
    assert (inside(tmp_path), path.read_bytes()) == (["file"], b"old")


def test_what_is_durable_is_synced_before_and_after_the_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    for name in ("write", "fsync", "rename"):
        real = getattr(os, name)

        def call(*args: Any, name: str = name, real: Any = real, **kwargs: Any) -> Any:
            if name == "fsync":
                kind = "directory" if stat.S_ISDIR(os.fstat(args[0]).st_mode) else "file"
                calls.append(f"fsync {kind}")
            else:
                calls.append(name)
            return real(*args, **kwargs)

        monkeypatch.setattr(os, name, call)
    replace_file(str(tmp_path / "file"), b"new", durable=True)
    assert calls == ["write", "fsync file", "rename", "fsync directory"]
    calls.clear()
    replace_file(str(tmp_path / "file"), b"new")
    assert calls == ["write", "rename"]


def test_a_directory_that_cannot_be_synced_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.fsync

    def sync(fd: int) -> None:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "not here")
        real(fd)

    monkeypatch.setattr(os, "fsync", sync)
    replace_file(str(tmp_path / "file"), b"new", durable=True)
    assert (tmp_path / "file").read_bytes() == b"new"


KILLED = """
import os, signal, sys
from opscope.replace_file import replace_file
os.rename = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
replace_file(sys.argv[1], b"new")
"""


def test_what_a_killed_writer_left_can_be_removed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    for name in ("file.new", "file.0123456789abcdef.newer", "other.0123456789abcdef.new"):
        (tmp_path / name).touch()
    others = inside(tmp_path)
    subprocess.run([sys.executable, "-c", KILLED, path], check=False, timeout=60)
    assert (len(inside(tmp_path)), path.read_bytes()) == (len(others) + 1, b"old")
    remove_remains(str(path), age_s=3600)
    assert len(inside(tmp_path)) == len(others) + 1
    remove_remains(str(path))
    assert inside(tmp_path) == others


def test_no_other_file_creates_a_file_to_rename_it() -> None:
    renames = ("os.rename(", "os.replace(")
    creates = ("O_EXCL", "mkstemp(", "NamedTemporaryFile(", '.new"')
    found = [
        path.name
        for top in ("agent", "exporters")
        for path in sorted((ROOT / top).rglob("*.py"))
        if all(any(word in path.read_text() for word in words) for words in (renames, creates))
    ]
    assert found == ["replace_file.py"]
