"""``opscope ps``: the Python processes of this host, each observed, or not and why.

Where the reasons come from is in agent/inventory.py.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from opscope import config
from opscope.agent import directories, python_processes
from opscope.agent.host import Host
from opscope.agent.inventory import Unobserved, unobserved
from opscope.agent.pid_namespaces import Pids
from opscope.agent.snapshot import Process
from opscope.agent.view import overhead, sampling


class Line(NamedTuple):
    pid: int
    user: str
    program: str
    state: str
    """For people; what follows is the same for scripts."""
    facts: Mapping[str, Any]
    """`attached`, and what else is known of one that is, or why it is not."""

    def as_json(self) -> dict[str, Any]:
        return {"pid": self.pid, "user": self.user, "program": self.program, **self.facts}


@click.command("ps")
@click.option("--json", "as_json", is_flag=True, help="One JSON object for scripts.")
@click.option("--directory", "places", multiple=True, help="Where segments are; repeatable.")
def command(as_json: bool, places: tuple[str, ...]) -> None:
    """List the Python processes of this host: attached, or not and why."""
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
    """One for each process, by pid; a dead one has none."""
    host = Host(patterns, consume=False, max_series=1)
    observed = [process for process in host.collect().processes if process.is_alive]
    pids = Pids()
    found = [_observed(process, now_unix_ns, pids) for process in observed]
    for other in unobserved(patterns, observed):
        facts = {"attached": False, "code": other.code, "why": other.why}
        found.append(Line(other.pid, other.user, other.program, _state(other), facts))
    return sorted(found, key=lambda line: line[:4])


def _state(process: Unobserved) -> str:
    if process.code == "armed":
        return process.why
    code = "" if process.code == "not-started" else f" ({process.code})"
    return f"not attached: {process.why}{code}"


def _observed(process: Process, now_unix_ns: int, pids: Pids) -> Line:
    service = "" if process.service == process.program else f" as {process.service}"
    bridges = ", ".join(
        name if outcome == "attached" else f"{name} not: {outcome}"
        for name, outcome in sorted(process.bridges.items())
    )
    device = process.notes.get("torch.device_type", "cpu")
    since = datetime.fromtimestamp(process.created_unix_ns / 1e9).isoformat(" ", "seconds")
    # The recorder names a set of "other" in case there are too many.
    pairs = {pair for one in process.label_sets for pair in one if pair[1] != "other"}
    labels = sorted(f"{name}={value}" for name, value in pairs)
    passed_over = process.notes.get("opscope.passed_over", "")
    cost = overhead((process,), now_unix_ns)
    pid_here = pids.pid_here(process.pid_namespace, process.pid, process.process_start)
    words = [
        f"attached{service}",
        _place(process.pid, pid_here),
        f"bridges: {bridges}" if bridges else "",
        f"torch times on {device}: of dispatch" if device != "cpu" else "",
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
        "overhead_of_late": process.overhead_of_late,
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
    late, most = _percent(process.overhead_of_late), _percent(process.overhead_budget)
    return f" (of late {late} of CPU time, at most {most})"


def _percent(share: float) -> str:
    return f"{share:.2%}".replace("%", " %")
