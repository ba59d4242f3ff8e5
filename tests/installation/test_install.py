"""`opscope install`, `uninstall`, `status` for an environment; uninstalling leaves nothing."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest

from opscope.errors import OpscopeError
from opscope.installation import environment as environments
from opscope.installation import path_file
from tests.installation.conftest import Venv, contents, opscope


def test_installing_twice_changes_nothing_and_uninstalling_restores(environment: Venv) -> None:
    before = contents(environment.directory)
    chosen = ("--venv", environment.directory)

    assert opscope("status", *chosen).returncode == 1
    first = opscope("install", *chosen)
    assert (first.returncode, first.stderr) == (0, "")
    assert (
        f"{environment.python} (Python {'.'.join(map(str, sys.version_info[:3]))})" in first.stdout
    )
    once = contents(environment.directory)
    assert once.keys() - before.keys() == {
        str((environment.site / path_file.NAME).relative_to(environment.directory))
    }
    again = opscope("install", *chosen)
    assert (again.returncode, "was installed already" in again.stdout) == (0, True)
    assert contents(environment.directory) == once
    status = opscope("status", *chosen)
    assert (status.returncode, "installed, opscope" in status.stdout) == (0, True)

    assert opscope("uninstall", *chosen).returncode == 0
    assert contents(environment.directory) == before
    repeated = opscope("uninstall", *chosen)
    assert (repeated.returncode, "was not installed" in repeated.stdout) == (0, True)


def test_an_interpreter_names_its_environment_too(environment: Venv) -> None:
    assert opscope("install", "--venv", environment.python).returncode == 0
    assert (environment.site / path_file.NAME).exists()


def test_a_file_that_is_not_opscopes_is_neither_replaced_nor_removed(environment: Venv) -> None:
    file = environment.site / path_file.NAME
    file.write_text("import own\n")
    for command in ("install", "uninstall", "status"):
        done = opscope(command, "--venv", environment.directory)
        assert done.returncode == 1, command
        assert "restore or remove it yourself" in done.stdout + done.stderr
    assert file.read_text() == "import own\n"


def test_a_changed_file_is_not_opscopes(environment: Venv) -> None:
    path_file.put(str(environment.site), "/somewhere/opscope")
    file = environment.site / path_file.NAME
    file.write_text(file.read_text() + "import own\n")
    with pytest.raises(OpscopeError, match="was changed after `opscope install` wrote it"):
        path_file.take(str(environment.site))


def test_an_upgrade_replaces_an_earlier_opscopes_files(tmp_path: Path) -> None:
    assert path_file.put(str(tmp_path), "/old/opscope")
    assert path_file.put(str(tmp_path), "/new/opscope")
    assert path_file.read(str(tmp_path)) == "/new/opscope"
    assert path_file.take(str(tmp_path))
    assert os.listdir(tmp_path) == []


def test_an_opscope_that_does_not_load_is_not_left_installed(tmp_path: Path) -> None:
    # No opscope can be imported there, and the one of the tests has its library elsewhere.
    venv = Venv(tmp_path / "venv")
    (venv.site / "tests.pth").unlink()
    (venv.site / "opscope").mkdir()
    (venv.site / "opscope" / "__init__.py").write_text("")
    before = contents(venv.directory)
    done = opscope("install", "--venv", venv.directory)
    assert done.returncode == 1
    assert "cannot load opscope: " in done.stderr
    assert "-m pip install opscope" in done.stderr
    assert contents(venv.directory) == before


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.EACCES, "Permission denied; run this as the owner"),
        (errno.EROFS, "Read-only file system; use `opscope install --payload` and PYTHONPATH"),
        (errno.ENOSPC, "No space left on device"),
    ],
)
def test_a_failure_to_write_has_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, words: str
) -> None:
    def fail(*_: object, **_by_name: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("os.rename", fail)
    with pytest.raises(OpscopeError) as caught:
        path_file.put(str(tmp_path), "/opscope")
    assert str(caught.value) == f"cannot write {tmp_path / path_file.NAME}: {words}" + (
        " of that directory (sudo?)" if code == errno.EACCES else ""
    )
    assert os.listdir(tmp_path) == []


def test_a_directory_without_an_environment_is_reported(tmp_path: Path) -> None:
    for place, words in ((tmp_path, "no interpreter at"), (Path("/bin/true"), "does not run as")):
        done = opscope("install", "--venv", place)
        assert done.returncode == 1
        assert words in done.stderr
        assert "Traceback" not in done.stderr


def test_the_ways_exclude_one_another() -> None:
    done = opscope("install", "--system", "--venv", "x")
    assert (done.returncode, "cannot be combined" in done.stderr) == (2, True)
    assert opscope("install", "--cffi", "x").returncode == 2


def test_an_old_interpreter_is_left_alone(tmp_path: Path) -> None:
    old = tmp_path / "python3.9"
    said = (
        '{"version": [3, 9, 1], "implementation": "cpython", "flags": "", "site": "/s",'
        ' "package": ""}'
    )
    old.write_text(f"#!/bin/sh\necho '{said}'\n")
    old.chmod(0o755)
    assert environments.look_at(str(old)).refusal == "Python older than 3.10"
    done = opscope("install", "--venv", old)
    assert (done.returncode, "Python older than 3.10" in done.stderr) == (1, True)
    assert [e.site for e in environments.of_system([str(tmp_path)])] == ["/s"]


def test_the_systems_interpreters_are_distinguished_by_their_site_packages(
    tmp_path: Path, environment: Venv
) -> None:
    for name in ("python3", "python3.11", "python3-config", "python3.11-dbg"):
        (tmp_path / name).symlink_to(environment.python)
    (found,) = environments.of_system([str(tmp_path)])
    assert os.path.basename(found.python) == "python3"


@pytest.mark.parametrize("package", ["/it's/opscope", "/ä/opscope"])
def test_a_path_that_no_line_could_hold_is_refused(package: str) -> None:
    with pytest.raises(OpscopeError, match="plain ASCII"):
        path_file.text(package)


def test_a_pythons_site_passes_over_a_package_that_is_gone(environment: Venv) -> None:
    path_file.put(str(environment.site), "/gone/opscope")
    done = environment.run("-c", "print('on')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "on\n", "")
    status = opscope("status", "--venv", environment.directory)
    assert (status.returncode, "does not load opscope" in status.stdout) == (1, True)
