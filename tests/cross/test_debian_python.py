"""A CPython of Debian, made to run where it is unpacked."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from native.cross import debian, debian_python


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
    monkeypatch.setattr(debian_python, "run", lambda *command: started.append([*map(str, command)]))
    settings.parent.mkdir(parents=True)
    settings.write_text("{'WHEEL_PKG_DIR': '/usr/share/python-wheels'}")
    python = tmp_path / "usr/bin/python3.14"
    for _ in range(2):  # the second time it is ready
        assert debian_python.debian_python("3.14", "sid", ("libzstd1",)) == python
    ((_, *arguments),) = started
    assert arguments == [
        *("--set-interpreter", str(tmp_path / "usr/lib64/ld-linux-x86-64.so.2")),
        *("--force-rpath", "--set-rpath", str(tmp_path / "usr/lib/x86_64-linux-gnu")),
        str(python),
    ]
    assert settings.read_text() == f"{{'WHEEL_PKG_DIR': '{tmp_path}/usr/share/python-wheels'}}"
