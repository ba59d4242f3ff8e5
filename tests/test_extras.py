"""A command that needs an extra says which in one line; the others need none."""

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from opscope import extras

REQUIRES = [
    "cffi>=2.0",
    "numpy>=1.26; extra == 'agent'",
    'click>=8.1 ; extra == "agent"',
    "tomli>=2; python_version < '3.11' and extra == 'agent'",
    "scipy-openblas32; extra == 'tensor'",
]


@pytest.mark.parametrize(
    ("installed", "has_agent", "has_tensor"),
    [
        ({"numpy": "1.26.0", "click": "8.1"}, True, False),
        ({"numpy": "2.4.1", "click": "8.10.2rc1", "scipy-openblas32": "0.3.27"}, True, True),
        ({"numpy": "1.26.0", "click": "8.0.4"}, False, False),
        ({"numpy": "1.26.0", "click": "7.1.2"}, False, False),
        ({"numpy": "1.26.0"}, False, False),
        ({}, False, False),
    ],
)
def test_an_extra_is_installed_with_all_that_it_asks_for(
    monkeypatch: pytest.MonkeyPatch, installed: dict[str, str], has_agent: bool, has_tensor: bool
) -> None:
    def version(name: str) -> str:
        if name not in installed:
            raise metadata.PackageNotFoundError(name)
        return installed[name]

    monkeypatch.setattr(metadata, "requires", lambda name: REQUIRES)
    monkeypatch.setattr(metadata, "version", version)
    assert extras.is_installed("agent") == has_agent
    assert extras.is_installed("tensor") == has_tensor


def test_the_package_asks_for_cffi_alone() -> None:
    requires = metadata.requires("opscope") or []
    assert [one for one in requires if "extra ==" not in one] == ["cffi>=2.0"]
    assert {"agent", "otlp", "tensor", "all"} <= set(
        metadata.metadata("opscope").get_all("Provides-Extra") or ()
    )


@pytest.mark.parametrize(
    ("hidden", "program", "line"),
    [
        (
            "opentelemetry",
            "from opscope.cli import main; main(['agent', '--exporter', 'otlp', "
            "'--listen', '127.0.0.1:0', '--directory', {place!r}])",
            "Error: the exporter otlp needs the extra 'otlp': pip install 'opscope[otlp]'",
        ),
        (
            "opentelemetry",
            "from opscope.cli.trace import _sender; _sender()",
            "opscope.errors.OpscopeError: opscope trace --spans needs the extra 'otlp': "
            "pip install 'opscope[otlp]'",
        ),
        (
            "numpy",
            "import opscope; opscope.serve()",
            "ModuleNotFoundError: opscope.serve needs the extra 'agent': "
            "pip install 'opscope[agent]'",
        ),
    ],
)
def test_what_needs_an_extra_says_which(
    hidden: str, program: str, line: str, tmp_path: Path
) -> None:
    code = f"import sys; sys.modules[{hidden!r}] = None; " + program.format(place=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == line
    assert ("Traceback" in done.stderr) == (not line.startswith("Error: "))
