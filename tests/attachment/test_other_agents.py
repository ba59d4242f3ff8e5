"""Other observers with a sitecustomize of their own: all of them run, in either order."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from opscope.attachment.launch import SITE

from .conftest import Bench

SCRIPTS = Path(sysconfig.get_path("scripts"))
OPSCOPE = (str(SCRIPTS / "opscope"), "run", "--")
OPENTELEMETRY = (str(SCRIPTS / "opentelemetry-instrument"),)
DATADOG = (str(SCRIPTS / "ddtrace-run"),)

# Loaded by either of them at a program's start, and by nothing else here.
STARTED = {OPENTELEMETRY: "opentelemetry.sdk.trace", DATADOG: "ddtrace.bootstrap.preload"}

PROGRAM = """
import sys, os
import numpy
import opscope
status = opscope.attach_status()
import sitecustomize
print(status.attached, status.bridges, os.environ.get("WITNESS"))
print([name for name in {names!r} if name in sys.modules])
print([path for path in sys.path if path == {site!r}])
"""


def observe(bench: Bench, *command: str) -> subprocess.CompletedProcess[str]:
    names = list(STARTED.values())
    script = bench.script("work.py", PROGRAM.format(names=names, site=SITE))
    environ = {
        **bench.bare,
        "OPSCOPE_DIR": str(bench.segments),
        "TMPDIR": str(bench.directory),  # where Datadog's agent writes its files
        "OTEL_TRACES_EXPORTER": "none",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
        "DD_TRACE_ENABLED": "false",
        "DD_REMOTE_CONFIGURATION_ENABLED": "false",
        "DD_INSTRUMENTATION_TELEMETRY_ENABLED": "false",
    }
    return bench.start([*command, sys.executable, script], environ)


@pytest.mark.parametrize(
    "command",
    [
        (*OPSCOPE, *OPENTELEMETRY),
        (*OPENTELEMETRY, *OPSCOPE),
        (*OPSCOPE, *DATADOG),
        (*DATADOG, *OPSCOPE),
        (*OPSCOPE, *OPENTELEMETRY, *DATADOG),
    ],
    ids=lambda command: "-".join(os.path.basename(w) for w in command if "/" in w),
)
def test_every_observer_starts(bench: Bench, command: tuple[str, ...]) -> None:
    done = observe(bench, *command)
    assert done.returncode == 0, done.stderr
    attached, started, path = done.stdout.splitlines()
    assert attached == "True {'numpy': 'attached', 'blas': 'attached'} None"
    expected = [name for other, name in STARTED.items() if other[0] in command]
    assert started == str(expected)
    assert path == "[]"
    assert "opscope" not in done.stderr


def test_starting_beside_another_agent_raises_nothing(bench: Bench) -> None:
    # Copied to a directory without opscope.
    bench.script("beside/opscope_beside.py", (Path(SITE) / "opscope_beside.py").read_text())
    program = f"import sys; sys.path.append({str(bench.directory / 'beside')!r});"
    done = bench.run("-c", f"{program} import opscope_beside; opscope_beside.start()")
    assert (done.returncode, done.stderr) == (0, "")
