"""Tries out each framework of this environment: a process of its own imports it and is observed.

What that process records goes to a directory of its own, beside the real one and removed again, and
is read back as the host agent reads it.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from opscope import config
from opscope.agent import directories
from opscope.agent.host import Host
from opscope.agent.snapshot import SAMPLES
from opscope.errors import ConfigError
from opscope.installation.checks import FAILS, FINE, WARNS, Check

_WORK = {
    "numpy": "numpy.add(numpy.ones(3), 1)",
    "torch": "torch.ones(3).add(1)",
}
_PROGRAM = """
import opscope
import {framework}
opscope.attach()
status = opscope.attach_status()
print(status.bridges.get("{framework}", status.text or status.code))
{work}
"""
_TIMEOUT_S = 300.0


def frameworks() -> Iterator[Check]:
    """One check for each framework that opscope has a bridge for."""
    try:
        settings = config.load()
    except ConfigError:
        return  # told elsewhere
    for framework in _WORK:
        if importlib.util.find_spec(framework) is None:
            yield Check(framework, FINE, "not installed here")
        elif framework not in settings.bridges:
            yield Check(framework, WARNS, "installed, not to be observed", "see OPSCOPE_BRIDGES")
        else:
            yield _try(framework, settings.directory)


def _try(framework: str, directory: str) -> Check:
    name = f"{framework} {_version(framework)}"
    place = os.path.dirname(directory)
    try:
        with tempfile.TemporaryDirectory(prefix="opscope-doctor-", dir=place) as segments:
            environ = {
                key: value for key, value in os.environ.items() if not key.startswith("OPSCOPE_")
            }
            environ |= {"OPSCOPE_DIR": segments, "OPSCOPE_SAMPLING": "1"}
            program = _PROGRAM.format(framework=framework, work=_WORK[framework])
            done = subprocess.run(
                [sys.executable, "-c", program],
                env=environ,
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
            )
            if done.returncode != 0:
                reason = done.stderr.strip().rpartition("\n")[2]
                return Check(framework, FAILS, f"{name} does not import: {reason}", "")
            outcome = done.stdout.strip().rpartition("\n")[2]
            if outcome != "attached":
                advice = "it is left alone; an opscope that knows this version sees it"
                return Check(framework, WARNS, f"{name}: {outcome}", advice)
            host = Host(directories.exactly([segments]), consume=False)
            snapshot = host.collect()
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check(framework, FAILS, f"{name} could not be tried: {error}", "")
    calls = sum(
        int(row[SAMPLES])
        for key, row in zip(snapshot.keys, snapshot.counters, strict=True)
        if key.framework == framework
    )
    if not calls:
        advice = "attached, but what it did was not recorded; please report this"
        return Check(framework, FAILS, f"{name}: nothing was recorded", advice)
    return Check(framework, FINE, f"{name}, tried: {calls} calls recorded and read back")


def _version(framework: str) -> str:
    try:
        return version(framework)
    except PackageNotFoundError:
        return "of unknown version"
