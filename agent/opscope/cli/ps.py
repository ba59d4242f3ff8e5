"""`opscope ps`: list the Python processes of this host, each observed or with the reason why not.

processes/inventory.py finds the reasons.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from opscope import config
from opscope.cli._shared_options import DIRECTORY
from opscope.segments import directories

if TYPE_CHECKING:
    from opscope.host.pid_namespaces import Pids
    from opscope.host.snapshot import Process
    from opscope.processes.inventory import Unobserved


class Line(NamedTuple):
    pid: int
    user: str
    program: str
    state: str
    """Text for people; `facts` has the same for scripts."""
    facts: Mapping[str, Any]
    """`attached` with details of the process, or the reason why it is not."""

    def as_json(self) -> dict[str, Any]:
        return {"pid": self.pid, "user": self.user, "program": self.program, **self.facts}


@click.command("ps", short_help="List Python processes, and why some are not observed.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@DIRECTORY
def command(as_json: bool, places: tuple[str, ...]) -> None:
    """List the Python processes of this host, and why some are not observed."""
    patterns = directories.exactly(places) or directories.patterns(config.load().directory)
    found = lines(patterns, time.time_ns())
    if as_json:
        click.echo(json.dumps({"processes": [line.as_json() for line in found]}, indent=1))
        return
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1))
    table.add_column("pid", justify="right", no_wrap=True)
    table.add_column("user", no_wrap=True, overflow="ellipsis", max_width=12)
    table.add_column("program", overflow="fold", max_width=28)
    table.add_column("state", overflow="fold", ratio=1)
    for line in found:
        table.add_row(str(line.pid), Text(line.user), Text(line.program), Text(line.state))
    Console().print(table)


def lines(patterns: tuple[str, ...], now_unix_ns: int) -> list[Line]:
    """One line for each live process, by pid."""
    from opscope.host.host import Host
    from opscope.host.pid_namespaces import Pids
    from opscope.processes.inventory import unobserved

    host = Host(patterns, consume=False, max_series=1)
    observed = [process for process in host.collect().processes if process.is_alive]
    pids = Pids()
    found = [_observed_or_why_not(process, now_unix_ns, pids) for process in observed]
    for other in unobserved(patterns, observed):
        facts = {"attached": False, "code": other.code, "why": other.why}
        found.append(Line(other.pid, other.user, other.program, _state(other), facts))
    return sorted(found, key=lambda line: line[:4])


def _state(process: Unobserved) -> str:
    if process.code == "armed":
        return process.why
    code = "" if process.code == "not-started" else f" ({process.code})"
    return f"not attached: {process.why}{code}"


def _observed_or_why_not(process: Process, now_unix_ns: int, pids: Pids) -> Line:
    """The line of a process; unusable data of one process does not affect the others."""
    from opscope.control.control_block import UNFORESEEN

    try:
        return _observed(process, now_unix_ns, pids)
    except Exception as error:
        why = f"{UNFORESEEN}: {error!r}"
        return Line(process.pid, "?", process.program, why, {"attached": True, "why": why})


def _devices(process: Process) -> Iterator[str]:
    for framework in sorted(process.bridges):
        device = process.notes.get(f"{framework}.device_type", "cpu")
        if device != "cpu":
            yield f"{framework} times on {device}: of dispatch"


def _without(process: Process) -> Iterator[str]:
    """The parts of each bridge that do not work with this framework, with the reasons."""
    for framework in sorted(process.bridges):
        if parts := process.notes.get(f"{framework}.without"):
            yield f"{framework} without {parts}"


def _observed(process: Process, now_unix_ns: int, pids: Pids) -> Line:
    from opscope.processes import python_processes
    from opscope.reports.view import overhead, sampling

    service = "" if process.service == process.program else f" as {process.service}"
    bridges = ", ".join(
        name if outcome == "attached" else f"{name} not: {outcome}"
        for name, outcome in sorted(process.bridges.items())
    )
    since = datetime.fromtimestamp(process.created_unix_ns / 1e9).isoformat(" ", "seconds")
    # The recorder names a label set "other" if there are too many.
    pairs = {pair for one in process.label_sets for pair in one if pair[1] != "other"}
    labels = sorted(f"{name}={value}" for name, value in pairs)
    passed_over = process.notes.get("opscope.passed_over", "")
    cost = overhead((process,), now_unix_ns)
    pid_here = pids.pid_here(process.pid_namespace, process.pid, process.process_start)
    words = [
        f"attached{service}",
        _place(process.pid, pid_here),
        f"bridges: {bridges}" if bridges else "",
        *_without(process),
        *_devices(process),
        f"since {since}",
        sampling((process,)),
        f"overhead {_percent(cost or 0.0)}{_budget(process)}",
        f"settings: {process.notes['settings.refused']}"
        if "settings.refused" in process.notes
        else "",
        ", ".join(labels),
        f"instead of the opscope at {passed_over}" if passed_over else "",
    ]
    user = python_processes.user_name(process.uid)
    facts = {
        "attached": True,
        "service": process.service,
        "pid_namespace": process.pid_namespace,
        "pid_in_namespace": process.pid,
        "bridges": dict(sorted(process.bridges.items())),
        "since_unix_s": process.created_unix_ns / 1e9,
        "sampling": sampling((process,)),
        "overhead": cost,
        "recent_overhead": process.recent_overhead,
        "overhead_budget": process.overhead_budget,
        "labels": labels,
        "notes": dict(sorted(process.notes.items())),
    }
    pid = process.pid if pid_here is None else pid_here
    return Line(pid, user, process.program, "; ".join(filter(None, words)), facts)


def _place(pid: int, pid_here: int | None) -> str:
    if pid_here is None:
        return "pid of another namespace"
    return f"pid {pid} of another namespace" if pid != pid_here else ""


def _budget(process: Process) -> str:
    if not process.overhead_budget:
        return ""
    late, most = _percent(process.recent_overhead), _percent(process.overhead_budget)
    return f" (recently {late} of CPU time, at most {most})"


def _percent(share: float) -> str:
    return f"{share:.2%}".replace("%", " %")
