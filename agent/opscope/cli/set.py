"""`opscope set`: change the recording of running processes, and of those that start later.

record/settings_change.py defines the settings. control/control_block.py applies them to running
processes; control/settings_rules.py keeps them for later ones.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from opscope import config
from opscope.attachment.settings_file import Rule, matches
from opscope.cli._numbers import PID, duration
from opscope.cli._shared_options import DIRECTORY
from opscope.control import settings_rules
from opscope.errors import ConfigError, OpscopeError
from opscope.record.settings_change import ALONE, SettingsChange, parse
from opscope.segments import directories

if TYPE_CHECKING:
    from opscope.control.control_block import FoundProcess
    from opscope.control.control_many import Outcome

_WAIT_S = 1.0


@click.command("set", short_help="Change how running processes are recorded.")
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--pid", "pids", type=PID, multiple=True, help="Process to change; repeatable.")
@click.option(
    "--service", "services", multiple=True, metavar="GLOB", help="Services that match; repeatable."
)
@click.option("--all", "everything", is_flag=True, help="All processes.")
@click.option("--show", is_flag=True, help="Show the settings in force; change nothing.")
@click.option("--reset", is_flag=True, help="Restore the settings that each process started with.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--wait",
    type=duration(0),
    default=_WAIT_S,
    show_default=True,
    help="Seconds to wait for the processes to answer.",
)
@DIRECTORY
def command(
    settings: tuple[str, ...],
    pids: tuple[int, ...],
    services: tuple[str, ...],
    everything: bool,
    show: bool,
    reset: bool,
    as_json: bool,
    wait: float,
    places: tuple[str, ...],
) -> None:
    """Change how running processes are recorded, within a second and without a restart.

    \b
        opscope set --service 'trainer-*' sampling=0.01
        opscope set --pid 4711 windows=5ms/100ms labels=model_id,tenant
        opscope set --all max_overhead=0.2%
        opscope set --all enabled=false

    \b
    sampling      windows, or a probability from 0 to 1
    windows       length and mean period, like 2ms/250ms
    max_overhead  most CPU time to record with, like 0.5%, or off
    labels        up to two debug-info keys to export as labels, or none
    enabled       false: record nothing; a range then costs nothing

    With --service and --all, the settings also apply to processes that start later, and override
    their configuration (a file in the segment directory keeps them); with --pid, they apply to that
    process and those it forks. Only a process's owner and root can change its settings. Exits with
    status 1 if a process did not apply them.
    """
    if sum((show, reset, bool(settings))) != 1:
        raise click.UsageError("give one of: settings like sampling=0.1, --reset, --show")
    # Before the selection is checked: a misspelt setting is the likelier mistake.
    change = None if show else SettingsChange(given=ALONE) if reset else _parsed(settings)
    if not (pids or services or everything or show):
        raise click.UsageError("select processes: --pid PID, --service GLOB or --all")
    if everything and (pids or services):
        raise click.UsageError("--all cannot be combined with --pid or --service")
    patterns = directories.exactly(places) or directories.patterns(config.load().directory)
    globs = ("*",) if everything or not (pids or services) else services
    if change is None:
        _show(patterns, pids, globs, as_json)
        return
    for glob in globs:
        settings_rules.check_glob(glob)
    problems = _set_later(patterns, globs, None if reset else change)
    later = () if problems else globs
    chosen = _chosen(patterns, pids, globs, problems)
    missing = sorted(set(pids) - {found.pid for found in chosen})
    problems += [f"pid {pid}: no such observed process; `opscope ps` lists them" for pid in missing]
    from opscope.control import control_many

    outcomes = control_many.set_all(chosen, change, wait)
    what = "--reset" if reset else " ".join(change.words())
    _report(what, later, outcomes, problems, as_json)
    if problems or not all(outcome.done for outcome in outcomes):
        sys.exit(1)


def _parsed(settings: Sequence[str]) -> SettingsChange:
    try:
        return parse(settings)
    except ConfigError as error:
        raise click.UsageError(str(error)) from error


def _set_later(
    patterns: Sequence[str], globs: Sequence[str], change: SettingsChange | None
) -> list[str]:
    """Changes the file before the running processes are listed: a process that starts meanwhile
    either reads the new file or is listed."""
    problems = []
    found = directories.find(patterns)
    if globs and not found:
        problems.append(
            f"{', '.join(patterns)}: no such directory yet, so processes that start later keep "
            "their settings; change those in their environment or in "
            f"{config.CONFIG_PATH}"
        )
    for directory in found if globs else ():
        try:
            before = after = settings_rules.read_rules(directory)
            for glob in globs:
                after = settings_rules.changed(after, glob, change)
            if after != before:
                settings_rules.write_rules(directory, after)
        except OpscopeError as error:
            problems.append(str(error))
    return problems


def _chosen(
    patterns: Sequence[str], pids: Sequence[int], globs: Sequence[str], problems: list[str]
) -> list[FoundProcess]:
    from opscope.control import control_block

    live = control_block.find(patterns, problems)
    named = {found.path for pid in pids for found in control_block.by_pid(live, pid)}
    return [
        found
        for found in live
        if found.path in named or any(matches(found.service, glob) for glob in globs)
    ]


def _report(
    what: str,
    globs: Sequence[str],
    outcomes: Sequence[Outcome],
    problems: Sequence[str],
    as_json: bool,
) -> None:
    if as_json:
        _print_json(
            {
                "requested": what,
                "new_processes": list(globs),
                "processes": [
                    {**_named(one.found), "applied": one.done, "answer": one.text}
                    for one in outcomes
                ],
                "problems": list(problems),
            }
        )
        return
    console = Console()
    table = _table("answer")
    for one in outcomes:
        style = "green" if one.done else "red"
        found = one.found
        table.add_row(str(found.pid), Text(found.service), Text(one.text, style=style))
    applied = sum(one.done for one in outcomes)
    now = f"applied by {applied} of {_processes(len(outcomes))}"
    if not outcomes:
        now = "no matching process runs now"
    later = f"; applies to processes that start later ({', '.join(globs)})" if globs else ""
    console.print(Text(f"{what}: {now}{later}"))
    if outcomes:
        console.print(table)
    for problem in problems:
        click.echo(f"Error: {problem}", err=True)


def _processes(count: int) -> str:
    return f"{count} process{'' if count == 1 else 'es'}"


def _table(last: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1))
    table.add_column("pid", justify="right", no_wrap=True)
    table.add_column("service", overflow="fold", max_width=32)
    table.add_column(last, overflow="fold", ratio=1)
    return table


def _named(found: FoundProcess) -> dict[str, Any]:
    return {
        "pid": found.pid,
        "service": found.service,
        "program": found.program,
        "uid": found.header.uid,
    }


def _show(
    patterns: Sequence[str], pids: Sequence[int], globs: Sequence[str], as_json: bool
) -> None:
    from opscope.control import control_block, control_many

    rows = []
    problems: list[str] = []
    for found in _chosen(patterns, pids, globs, problems):
        try:
            with control_block.opened(found) as segment:
                rows.append((found, " ".join(segment.requested().words()), segment.answer().text()))
        except Exception as error:
            rows.append((found, "", control_many.said(found, error)))
    for problem in problems:
        click.echo(f"Error: {problem}", err=True)
    rules = {directory: _rules(directory) for directory in directories.find(patterns)}
    if as_json:
        _print_json(
            {
                "processes": [
                    {**_named(found), **_in_force(found), "set": asked, "answer": answer}
                    for found, asked, answer in rows
                ],
                "rules": {
                    directory: [list(rule) for rule in found]
                    for directory, found in rules.items()
                    if found
                },
            }
        )
        return
    console = Console()
    table = _table("in force")
    table.add_column("set while it runs", overflow="fold", ratio=1)
    for found, asked, answer in rows:
        said = f"{asked} ({answer})" if asked and answer != "in force" else asked or "-"
        table.add_row(str(found.pid), Text(found.service), Text(_line(found)), Text(said))
    console.print(table if rows else "no observed process")
    for directory, found_rules in rules.items():
        for rule in found_rules:
            console.print(Text(f"rule in {directory}: {rule.service}: {rule.word}"))


def _rules(directory: str) -> list[Rule]:
    try:
        return settings_rules.read_rules(directory)
    except OpscopeError as error:
        click.echo(f"Error: {error}", err=True)
        return []


def _in_force(found: FoundProcess) -> dict[str, Any]:
    header = found.header
    return {
        "enabled": not header.is_disabled,
        "sampling": "windows" if header.window_ns else header.sampling_prob,
        "window_ns": header.window_ns,
        "period_ns": header.period_ns if header.window_ns else 0,
        "max_overhead": header.overhead_budget_ppb / 1e9 or None,
        "recent_overhead": header.overhead_ppb / 1e9,
        "adaptations": header.adaptation_count,
        "refused_at_start": found.notes.get("settings.refused"),
        "labels": [key for key in found.notes.get("labels", "").split(",") if key],
    }


def _line(found: FoundProcess) -> str:
    header = found.header
    if header.is_disabled:
        return "enabled=false"
    if header.window_ns:
        sampling = f"windows={header.window_ns / 1e6:.6g}ms/{header.period_ns / 1e6:.6g}ms"
    else:
        sampling = f"sampling={header.sampling_prob:.6g}"
    budget = f"{header.overhead_budget_ppb / 1e7:.6g}%" if header.overhead_budget_ppb else "off"
    late = f"{header.overhead_ppb / 1e7:.2g}%"
    labels = found.notes.get("labels", "") or "none"
    refused = found.notes.get("settings.refused")
    return f"{sampling} max_overhead={budget} (recently {late}) labels={labels}" + (
        f"; refused at start: {refused}" if refused else ""
    )


def _print_json(value: object) -> None:
    click.echo(json.dumps(value, indent=2))
