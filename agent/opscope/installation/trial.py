"""Test each framework of this environment: a separate process imports it and is observed.

That process records into a directory of its own, beside the real one and removed afterwards, which
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
from opscope.bridges import catalog
from opscope.bridges.catalog import Bridge
from opscope.errors import ConfigError
from opscope.host.host import Host
from opscope.host.snapshot import SAMPLES
from opscope.installation.checks import FAILS, FINE, WARNS, Check
from opscope.segments import directories

_PROGRAM = """
import opscope
import {host}
opscope.attach()
status = opscope.attach_status()
outcome = status.bridges.get("{framework}", status.text or status.code)
print(outcome)
if outcome == "attached":
    exec({probe!r})
"""
_TIMEOUT_S = 300.0


def frameworks() -> Iterator[Check]:
    """One check for each framework that opscope has a bridge for."""
    try:
        settings = config.load()
    except ConfigError:
        return  # another check reports it
    for bridge in catalog.known():
        framework = bridge.framework
        if importlib.util.find_spec(bridge.host) is None:
            yield Check(framework, FINE, "not installed here")
        elif not settings.attaches_to(framework):
            yield Check(framework, WARNS, "installed, but switched off", "see OPSCOPE_BRIDGES")
        else:
            yield _try(bridge, settings.directory)


def _try(bridge: Bridge, directory: str) -> Check:
    framework = bridge.framework
    name = f"{framework} of {bridge.host}" if bridge.host != framework else framework
    name += f" {_version(bridge.host)}"
    place = os.path.dirname(directory)
    try:
        with tempfile.TemporaryDirectory(prefix="opscope-doctor-", dir=place) as segments:
            own = f"OPSCOPE_{framework.upper()}_"  # settings of its bridge
            environ = {
                key: value
                for key, value in os.environ.items()
                if not key.startswith("OPSCOPE_") or key.startswith(own)
            }
            environ |= {"OPSCOPE_DIR": segments, "OPSCOPE_SAMPLING": "1"}
            probe = "\n".join(bridge.probe or ())
            program = _PROGRAM.format(framework=framework, host=bridge.host, probe=probe)
            done = subprocess.run(
                [sys.executable, "-c", program],
                env=environ,
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
            )
            if done.returncode != 0:
                reason = done.stderr.strip().rpartition("\n")[2]
                return Check(framework, FAILS, f"{name} cannot be imported: {reason}", "")
            outcome = done.stdout.strip().rpartition("\n")[2]
            if outcome != "attached":
                advice = "this version is not supported; look for a newer opscope"
                return Check(framework, WARNS, f"{name}: {outcome}", advice)
            host = Host(directories.exactly([segments]), consume=False)
            snapshot = host.collect()
    except (OSError, subprocess.TimeoutExpired) as error:
        return Check(framework, FAILS, f"{name}: the test run failed: {error}", "")
    calls = sum(
        int(row[SAMPLES])
        for key, row in zip(snapshot.keys, snapshot.counters, strict=True)
        if key.framework == framework
    )
    if bridge.probe is None:
        return Check(framework, FINE, f"{name}: attached; its bridge has no operator to try")
    if not calls:
        advice = "attached, but recorded no call; please report this"
        return Check(framework, FAILS, f"{name}: no call was recorded", advice)
    without = {process.notes.get(f"{framework}.without", "") for process in snapshot.processes}
    if parts := "; ".join(sorted(without - {""})):
        advice = "the rest works; look for a newer opscope"
        return Check(framework, WARNS, f"{name}: attached, without {parts}", advice)
    return Check(framework, FINE, f"{name}, tested: {calls} calls recorded and read back")


def _version(framework: str) -> str:
    try:
        return version(framework)
    except PackageNotFoundError:
        return "of unknown version"
