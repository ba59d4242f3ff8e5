"""`make try-wheels` says what it does not try. Nothing is fetched or compiled here."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from native.cross import debian, other_pythons
from native.cross.other_pythons import MUSL, NEWER, TRIAL

WHEEL = f"opscope-1.0-cp310-abi3-{MUSL.platform}.whl"


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with an empty wheel for musl; every Python is there and nothing is started."""
    directory = tmp_path / "dist"
    directory.mkdir()
    (directory / WHEEL).touch()
    monkeypatch.setattr(os, "uname", lambda: uname("x86_64"))
    monkeypatch.setattr(other_pythons, "debian_python", lambda version, *_: Path(version))
    monkeypatch.setattr(other_pythons, "musl_python", lambda: Path("musl"))
    return directory


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What is started, with the variables that tell pip where packages are."""
    started: list[list[str]] = []

    def start(command: Sequence[str | Path], **keywords: Any) -> None:
        environ = keywords.get("env") or {}
        pip = [f"{name}={environ[name]}" for name in ("PIP_NO_INDEX",) if name in environ]
        started.append([*pip, *map(str, command)])

    monkeypatch.setattr(subprocess, "run", start)
    monkeypatch.setattr(other_pythons, "run", lambda *command, **_: start(command))
    return started


def uname(machine: str) -> os.uname_result:
    return os.uname_result(("Linux", "host", "6.1", "1", machine))


def unavailable(*_: object) -> Path:
    raise debian.UnavailableError("sid: the mirror does not answer")


def test_each_python_tries_its_wheel(wheels: Path, commands: list[list[str]]) -> None:
    other_pythons.main(wheels)
    newer = [[version, str(TRIAL), str(wheels)] for version in NEWER]
    assert commands[:-2] == newer
    # The Python for musl has no TLS, so this one downloads, for musl and not for itself.
    download, on_musl = commands[-2:]
    assert download[:4] == [sys.executable, "-m", "pip", "download"]
    assert {f"--platform={MUSL.platform}", "--only-binary=:all:"} <= {*download}
    assert download[-1] == f"{wheels / WHEEL}[agent]"
    assert on_musl == ["PIP_NO_INDEX=1", "musl", str(TRIAL), str(wheels / WHEEL)]


@pytest.mark.parametrize("missing", ["debian_python", "musl_python"])
def test_a_python_that_is_missing_is_named_and_ends_with_an_error_after_the_others(
    wheels: Path,
    commands: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    missing: str,
) -> None:
    monkeypatch.setattr(other_pythons, missing, unavailable)
    with pytest.raises(SystemExit) as ended:
        other_pythons.main(wheels)
    newer, musl = [f"CPython {version}" for version in NEWER], ["CPython for musl"]
    absent, rest = (newer, musl) if missing == "debian_python" else (musl, newer)
    assert ended.value.code == f"not tried with {', '.join(absent)}"
    said = capsys.readouterr().out.splitlines()
    assert said == [f"not tried with {name}: sid: the mirror does not answer" for name in absent]
    assert len([command for command in commands if str(TRIAL) in command]) == len(rest)


def test_a_wheel_that_fails_ends_with_an_error(
    wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(other_pythons, "debian_python", lambda *_: Path("/bin/false"))
    with pytest.raises(subprocess.CalledProcessError, match="/bin/false"):
        other_pythons.main(wheels)


@pytest.mark.parametrize("names", [[], [WHEEL, WHEEL.replace("1.0", "1.1")]])
def test_a_directory_without_one_wheel_for_musl_is_refused_before_anything_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str]
) -> None:
    monkeypatch.setattr(os, "uname", lambda: uname("x86_64"))
    monkeypatch.setattr(debian, "unpack", unavailable)
    for name in names:
        (tmp_path / name).touch()
    with pytest.raises(SystemExit, match=f"and has {', '.join(names) or 'none'}$"):
        other_pythons.main(tmp_path)


def test_another_machine_is_refused_by_its_name(
    wheels: Path, commands: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "uname", lambda: uname("aarch64"))
    with pytest.raises(SystemExit, match="for x86-64 alone, and this machine is aarch64"):
        other_pythons.main(wheels)
    assert commands == []


def test_a_python_of_debian_runs_with_the_c_library_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And its venv finds the pip beside it: both are packed with places of the system."""
    started: list[list[str]] = []
    settings = tmp_path / "usr/lib/python3.14/_sysconfigdata__linux.py"

    def unpack(packages: Sequence[str], suite: str, into: Path) -> Path:
        assert (suite, into.name) == ("sid", "python-3.14-sid")
        assert {"python3.14", "libpython3.14-stdlib", "libc6", "libzstd1"} <= {*packages}
        return tmp_path

    monkeypatch.setattr(debian, "unpack", unpack)
    monkeypatch.setattr(other_pythons, "run", lambda *command: started.append([*map(str, command)]))
    settings.parent.mkdir(parents=True)
    settings.write_text("{'WHEEL_PKG_DIR': '/usr/share/python-wheels'}")
    python = tmp_path / "usr/bin/python3.14"
    for _ in range(2):  # the second time it is ready
        assert other_pythons.debian_python("3.14", "sid", ("libzstd1",)) == python
    ((_, *arguments),) = started
    assert arguments == [
        *("--set-interpreter", str(tmp_path / "usr/lib64/ld-linux-x86-64.so.2")),
        *("--force-rpath", "--set-rpath", str(tmp_path / "usr/lib/x86_64-linux-gnu")),
        str(python),
    ]
    assert settings.read_text() == f"{{'WHEEL_PKG_DIR': '{tmp_path}/usr/share/python-wheels'}}"
