"""`make try-wheels` says what it does not try. Nothing is fetched or compiled here."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from native.cross import debian, emulator, other_pythons
from native.cross.other_pythons import MUSL, NEWER, TRIAL

WHEELS = [f"opscope-1.0-cp310-abi3-{target.platform}.whl" for target in MUSL]
NAMES = [
    *(f"CPython {version}" for version in NEWER),
    *(f"CPython for musl, {target.machine}" for target in MUSL),
]


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with empty wheels for musl; every Python is there and nothing is started."""
    directory = tmp_path / "dist"
    directory.mkdir()
    for name in WHEELS:
        (directory / name).touch()
    monkeypatch.setattr(os, "uname", lambda: uname("x86_64"))
    monkeypatch.setattr(other_pythons, "debian_python", lambda version, *_: Path(version))
    monkeypatch.setattr(other_pythons, "musl_python", lambda target: Path(target.machine))
    monkeypatch.setattr(emulator, "prefix", lambda: ["emulated"])
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
    newer, on_musl = commands[: len(NEWER)], commands[len(NEWER) :]
    assert newer == [[version, str(TRIAL), str(wheels)] for version in NEWER]
    for target, name, download, trial in zip(
        MUSL, WHEELS, on_musl[::2], on_musl[1::2], strict=True
    ):
        # The Python for musl has no TLS, so this one downloads, for that one and not for itself.
        assert download[:4] == [sys.executable, "-m", "pip", "download"]
        assert {f"--platform={target.platform}", "--only-binary=:all:"} <= {*download}
        assert download[-1] == f"{wheels / name}[agent]"
        emulated = ["emulated"] if target.machine == "aarch64" else []
        python = [*emulated, target.machine]
        assert trial == ["PIP_NO_INDEX=1", *python, str(TRIAL), str(wheels / name)]


@pytest.mark.parametrize(
    ("module", "missing", "absent"),
    [
        (other_pythons, "debian_python", NAMES[: len(NEWER)]),
        (other_pythons, "musl_python", NAMES[len(NEWER) :]),
        (emulator, "prefix", NAMES[-1:]),
    ],
)
def test_a_python_that_is_missing_is_named_and_ends_with_an_error_after_the_others(
    wheels: Path,
    commands: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    module: ModuleType,
    missing: str,
    absent: list[str],
) -> None:
    monkeypatch.setattr(module, missing, unavailable)
    with pytest.raises(SystemExit) as ended:
        other_pythons.main(wheels)
    assert ended.value.code == f"not tried with {'; '.join(absent)}"
    said = capsys.readouterr().out.splitlines()
    assert said == [f"not tried with {name}: sid: the mirror does not answer" for name in absent]
    tried = [command for command in commands if str(TRIAL) in command]
    assert len(tried) == len(NAMES) - len(absent)


def test_a_wheel_that_fails_ends_with_an_error(
    wheels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(other_pythons, "debian_python", lambda *_: Path("/bin/false"))
    with pytest.raises(subprocess.CalledProcessError, match="/bin/false"):
        other_pythons.main(wheels)


@pytest.mark.parametrize("names", [WHEELS[1:], WHEELS[:1], [*WHEELS, "opscope-1.1{}"]])
def test_a_directory_without_one_wheel_for_each_musl_is_refused_before_anything_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str]
) -> None:
    monkeypatch.setattr(os, "uname", lambda: uname("x86_64"))
    monkeypatch.setattr(debian, "unpack", unavailable)
    another = WHEELS[0].removeprefix("opscope-1.0")
    for name in names:
        (tmp_path / name.format(another)).touch()
    has = "none" if len(names) < len(WHEELS) else "opscope-1.0.*, opscope-1.1.*"
    with pytest.raises(SystemExit, match=rf"must have one opscope-.*\.whl, and has {has}$"):
        other_pythons.main(tmp_path)


def test_another_machine_is_refused_by_its_name(
    wheels: Path, commands: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "uname", lambda: uname("aarch64"))
    with pytest.raises(SystemExit, match="for x86-64 alone, and this machine is aarch64"):
        other_pythons.main(wheels)
    assert commands == []
