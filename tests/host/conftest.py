"""A directory for segments, a process that lives, and time enough."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Only its user may read it, as segments' directories normally are."""
    tmp_path.chmod(0o700)
    return tmp_path


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A process that lives until its standard input is closed."""
    code = "import sys; sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-S", "-c", code], stdin=subprocess.PIPE) as process:
        yield process


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pass runs out of time, which would leave work to the next."""
    monkeypatch.setattr("opscope.host.budgets.SECONDS", 1e6)
