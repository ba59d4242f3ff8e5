"""Root installs nothing that another user can change: refused, with the path and the reason."""

from __future__ import annotations

import errno
import grp
import os
import pwd
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from opscope.errors import OpscopeError
from opscope.installation import ownership, path_file
from opscope.installation.environment import look_at, of_system
from opscope.installation.ownership import Ownership
from tests.installation.conftest import Venv, contents

ALICE = 54321
OWN = os.geteuid()

as_root = pytest.mark.skipif(OWN != 0, reason="needs two users")


def refusal(path: Path, *trusted: int) -> str:
    try:
        Ownership({0, OWN, *trusted}).refuse([str(path)])
    except OpscopeError as error:
        return str(error)
    return ""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A file in a directory in a directory."""
    file = tmp_path / "above" / "site" / "module.py"
    file.parent.mkdir(parents=True)
    file.touch()
    for path in (tmp_path / "above", file.parent):
        path.chmod(0o755)
    file.chmod(0o644)
    return file


def test_a_file_that_only_its_user_can_write_is_accepted(tree: Path) -> None:
    assert refusal(tree) == ""
    assert refusal(tree.parent) == ""
    assert refusal(tree.parent / "not" / "there") == ""


@as_root
@pytest.mark.parametrize("part", [0, 1, 2])
def test_an_owner_of_any_part_of_the_way_may_change_it(tree: Path, part: int) -> None:
    path = (tree, *tree.parents)[part]
    os.chown(path, ALICE, -1)
    assert refusal(tree).startswith(f"{path} belongs to uid {ALICE}, who could change")
    assert refusal(tree, ALICE) == ""


@pytest.mark.parametrize("part", [0, 1, 2])
def test_a_file_that_every_user_can_write_is_refused(tree: Path, part: int) -> None:
    path = (tree, *tree.parents)[part]
    path.chmod(0o777)
    assert refusal(tree).startswith(f"{path} can be written by every user")


def test_a_sticky_directory_above_is_fine_and_one_that_is_searched_is_not(tree: Path) -> None:
    above = tree.parent.parent
    above.chmod(0o1777)
    assert refusal(tree) == ""
    # Others may add a module there.
    assert refusal(above).startswith(f"{above} can be written by every user")


@as_root
def test_links_are_followed_and_checked(tree: Path, tmp_path: Path) -> None:
    bin_python = tmp_path / "bin" / "python"
    bin_python.parent.mkdir(mode=0o755)
    bin_python.symlink_to("../above/../above/site/module.py")
    assert refusal(bin_python) == ""
    os.lchown(bin_python, ALICE, -1)
    assert refusal(bin_python).startswith(f"{bin_python} belongs to")
    os.lchown(bin_python, 0, -1)
    os.chown(tree.parent, ALICE, -1)
    assert refusal(bin_python).startswith(f"{tree.parent} belongs to")
    bin_python.unlink()
    bin_python.symlink_to("python")
    assert refusal(bin_python) == ""


def test_a_group_with_members_may_write(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.parent.chmod(0o775)
    staff = grp.struct_group(("staff", "x", tree.parent.stat().st_gid, []))
    alice = pwd.struct_passwd(("alice", "x", ALICE, ALICE, "", "/", "/bin/sh"))
    monkeypatch.setattr(grp, "getgrgid", lambda _: staff)
    monkeypatch.setattr(pwd, "getpwall", lambda: [alice])
    assert refusal(tree) == ""
    staff = grp.struct_group(("staff", "x", staff.gr_gid, ["alice"]))
    assert refusal(tree).startswith(f"{tree.parent} can be written by group staff (alice)")
    assert refusal(tree, ALICE) == ""


@as_root
def test_an_unknown_group_may_have_members(tree: Path) -> None:
    os.chown(tree.parent, -1, ALICE)
    tree.parent.chmod(0o775)
    assert refusal(tree).startswith(f"{tree.parent} can be written by group {ALICE}, which has no")


def test_an_access_control_list_may_name_others(tree: Path) -> None:
    # <linux/posix_acl_xattr.h>: version 2, then tag, permissions and id of each entry.
    none = 0xFFFFFFFF
    entries = ((1, 6, none), (2, 6, ALICE), (4, 4, none), (16, 6, none), (32, 4, none))
    raw = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)
    try:
        os.setxattr(tree, "system.posix_acl_access", raw)
    except OSError as error:
        if error.errno in (errno.ENOTSUP, errno.EPERM):
            pytest.skip("this file system has no access control lists")
        raise
    assert refusal(tree).startswith(f"{tree} can be written by the users in its access control")


# ---- what an environment runs -----------------------------------------------------------------


@pytest.fixture
def installed(environment: Venv) -> Venv:
    """With an opscope and a cffi of its own."""
    package = environment.site / "opscope" / "attachment"
    package.mkdir(parents=True)
    for path in (package.parent / "__init__.py", package / "entry.py"):
        path.touch()
    (environment.site / "_cffi_backend.so").touch()
    (environment.site / "tests.pth").write_text("")
    return environment


@as_root
@pytest.mark.parametrize(
    "name",
    [
        "bin/python",
        "pyvenv.cfg",
        "SITE",
        "SITE/tests.pth",
        "SITE/_cffi_backend.so",
        "SITE/opscope/__init__.py",
        "SITE/opscope/attachment",
        "SITE/opscope/attachment/entry.py",
        "",
    ],
)
def test_each_file_that_a_start_runs_is_checked(installed: Venv, name: str) -> None:
    target = look_at(str(installed.directory))
    files = [*ownership.files_of(target, target.package)]
    assert target.package == str(installed.site / "opscope")
    Ownership({0}).refuse(files)
    path = installed.directory / name.replace("SITE", str(installed.site))
    os.lchown(path, ALICE, -1)
    with pytest.raises(OpscopeError, match=f"{path} belongs to uid {ALICE}"):
        Ownership({0}).refuse(files)


def test_an_interpreter_that_may_not_be_run_is_not_run(tmp_path: Path) -> None:
    path = tmp_path / "python3.11"
    path.write_text(f"#!/bin/sh\ntouch {tmp_path}/was-run\n")
    path.chmod(0o755)
    assert of_system([str(tmp_path)], lambda python: python != str(path)) == []
    assert not (tmp_path / "was-run").exists()


# What of the host would change is hidden: its Python's packages, and entries for all users.
HIDDEN = """
for place in /dev/shm /etc/tmpfiles.d; do
    test ! -d $place || mount -t tmpfs none $place || exit 9
done
site=$(/usr/bin/python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))') &&
mkdir -p "$site" && mount -t tmpfs -o mode=755 none "$site" && "$@"; status=$?
ls "$site"; exit $status
"""


def system_install(python: Path) -> subprocess.CompletedProcess[str]:
    command = [str(python), "-c", "from opscope.cli import main; main()", "install", "--system"]
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", HIDDEN, "sh", *command],
        capture_output=True,
        text=True,
        timeout=300,
    )


@as_root
@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="no Python of the host's own")
@pytest.mark.parametrize(
    "spoil",
    [
        lambda venv: os.chown(venv.site, ALICE, -1),
        lambda venv: venv.directory.chmod(0o777),
        lambda venv: os.lchown(venv.python, ALICE, -1),
        lambda venv: os.chown(venv.site / "tests.pth", ALICE, -1),
    ],
)
def test_root_installs_nothing_for_the_system_from_files_that_a_user_can_write(
    environment: Venv, spoil: Callable[[Venv], None]
) -> None:
    spoil(environment)
    done = system_install(environment.python)
    assert (done.returncode, done.stdout) == (1, "")
    assert str(environment.directory) in done.stderr
    assert "who could change the code that root runs in every process" in done.stderr
    assert "Traceback" not in done.stderr


@as_root
@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="no Python of the host's own")
def test_root_installs_from_files_that_only_root_can_write(environment: Venv) -> None:
    done = system_install(environment.python)
    # Of this tree's opscope the host's Python may find no cffi.
    assert done.returncode == 0 or "cannot load opscope" in done.stderr
    assert "root runs" not in done.stderr


@as_root
@pytest.mark.parametrize("part", ["site", "python", "named", "wheels"])
def test_root_writes_no_payload_from_files_that_a_user_can_write(
    environment: Venv, tmp_path: Path, part: str
) -> None:
    named, wheels = Venv(tmp_path / "named"), tmp_path / "wheels"
    wheels.mkdir()
    spoiled = {
        "site": environment.site,
        "python": environment.python,
        "named": named.site,
        "wheels": wheels,
    }[part]
    os.lchown(spoiled, ALICE, -1)
    more = {"named": ("--python", str(named.python)), "wheels": ("--cffi", str(wheels))}
    code = "from opscope.cli import main; main()"
    payload = str(tmp_path / "payload")
    done = environment.run("-c", code, "install", "--payload", payload, *more.get(part, ()))
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{spoiled} belongs to uid {ALICE}" in done.stderr
    assert not (tmp_path / "payload").exists()


@as_root
def test_root_may_install_into_a_users_environment_from_that_users_files(environment: Venv) -> None:
    for path in (environment.directory, *environment.directory.rglob("*")):
        os.lchown(path, ALICE, -1)
    code = "from opscope.cli import main; main()"
    done = environment.run("-c", code, "install", "--venv", str(environment.directory))
    assert (done.returncode, done.stderr) == (0, "")
    assert (environment.site / path_file.NAME).exists()


@as_root
def test_root_installs_nothing_into_an_environment_from_another_users(
    environment: Venv, tmp_path: Path
) -> None:
    other = Venv(tmp_path / "other")
    os.chown(other.site, ALICE, -1)
    before = contents(environment.directory)
    code = "from opscope.cli import main; main()"
    done = other.run("-c", code, "install", "--venv", str(environment.directory))
    assert done.returncode == 1
    assert f"{other.site} belongs to uid {ALICE}" in done.stderr
    assert contents(environment.directory) == before
    assert not (environment.site / path_file.NAME).exists()
