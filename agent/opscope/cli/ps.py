"""``opscope ps``: the Python processes of this host, each observed, or not and why.

From three sources: segments (observed), the ledger that attaching writes (not, and why), and /proc
(the others). What a segment or an entry of the ledger says is read elsewhere.
"""

from __future__ import annotations

import os
import time
from datetime import datetime
from typing import NamedTuple

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from opscope import config
from opscope.agent import directories, python_processes
from opscope.agent.host import Host
from opscope.agent.snapshot import Process
from opscope.agent.view import overhead, sampling
from opscope.attachment import ledger

ARMED = "armed: no numpy/torch imported yet"
NOT_STARTED_BY_US = "not attached: started without opscope"


class Line(NamedTuple):
    pid: int
    user: str
    program: str
    state: str


@click.command("ps")
@click.option("--directory", "places", multiple=True, help="Where segments are; repeatable.")
def command(places: tuple[str, ...]) -> None:
    """List the Python processes of this host: attached, or not and why."""
    patterns = directories.exactly(places) or directories.patterns(config.load().directory)
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1))
    table.add_column("pid", justify="right", no_wrap=True)
    table.add_column("user", no_wrap=True, overflow="ellipsis", max_width=12)
    table.add_column("program", overflow="fold", max_width=28)
    table.add_column("state", overflow="fold", ratio=1)
    for line in lines(patterns, time.time_ns()):
        table.add_row(str(line.pid), *(Text(part) for part in line[1:]))
    Console().print(table)


def lines(patterns: tuple[str, ...], now_unix_ns: int) -> list[Line]:
    """One for each process, by pid; a dead one has none."""
    host = Host(patterns, consume=False, max_series=1)
    observed = {
        (process.pid, process.process_start): process
        for process in host.collect().processes
        if process.is_alive
    }
    reasons = {
        (e.pid, e.process_start): e for e in ledger.read_all(directories.find_ledgers(patterns))
    }
    running = {(p.pid, p.process_start): p for p in python_processes.running()}
    for key in reasons.keys() - running.keys():
        other = python_processes.look_up(key[0], any_executable=True)
        if other is not None and other.process_start == key[1]:
            running[key] = other

    found = [_observed(process, now_unix_ns) for process in observed.values()]
    for key, process in running.items():
        if key in observed or process.pid == os.getpid():
            continue
        entry = reasons.get(key)
        if entry is not None:
            state = f"not attached: {entry.text} ({entry.code})"
        else:
            state = ARMED if process.is_armed else NOT_STARTED_BY_US
        found.append(Line(process.pid, process.user, process.program, state))
    return sorted(found)


def _observed(process: Process, now_unix_ns: int) -> Line:
    service = "" if process.service == process.program else f" as {process.service}"
    bridges = ", ".join(
        name if outcome == "attached" else f"{name} not: {outcome}"
        for name, outcome in sorted(process.bridges.items())
    )
    device = process.notes.get("torch.device_type", "cpu")
    since = datetime.fromtimestamp(process.created_unix_ns / 1e9).isoformat(" ", "seconds")
    labels = {f"{name}={value}" for one in process.label_sets for name, value in one}
    # The recorder names a set of these in case there are too many.
    labels -= {f"{name}=other" for one in process.label_sets for name, _ in one}
    facts = [
        f"attached{service}",
        f"bridges: {bridges}" if bridges else "",
        f"torch times on {device}: of dispatch" if device != "cpu" else "",
        f"since {since}",
        sampling((process,)),
        f"overhead {overhead((process,), now_unix_ns) or 0.0:.2%}".replace("%", " %"),
        ", ".join(sorted(labels)),
    ]
    user = python_processes.user_name(process.uid)
    return Line(process.pid, user, process.program, "; ".join(filter(None, facts)))
