"""``opscope set``: change how running processes are recorded, and those that start later.

What a setting means is in record/wish.py, how a process hears of it in agent/control.py, and where
it stands for later ones in agent/settings_rules.py.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from opscope import config
from opscope.agent import control, directories, settings_rules
from opscope.agent.control import Found, Outcome
from opscope.attachment.settings_file import Rule, matches
from opscope.errors import ConfigError, OpscopeError
from opscope.record.wish import ALONE, Wish, parse

_WAIT_S = 1.0


@click.command("set", short_help="Change how running processes are recorded.")
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--pid", "pids", type=int, multiple=True, help="This process; repeatable.")
@click.option(
    "--service", "services", multiple=True, metavar="GLOB", help="Services so named; repeatable."
)
@click.option("--all", "everything", is_flag=True, help="Every process.")
@click.option("--show", is_flag=True, help="Change nothing; show what is in force.")
@click.option("--reset", is_flag=True, help="Back to what each process was configured with.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--wait",
    type=click.FloatRange(min=0.0),
    default=_WAIT_S,
    show_default=True,
    help="Seconds to wait for the processes' answers.",
)
@click.option("--directory", "places", multiple=True, help="Where segments are; repeatable.")
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
    """Changes how processes are recorded while they run, within a second and without a restart.

    \b
        opscope set --service 'trainer-*' sampling=0.01
        opscope set --pid 4711 windows=5ms/100ms labels=model_id,tenant
        opscope set --all max_overhead=0.2%
        opscope set --all enabled=false

    \b
    sampling      windows, or a probability from 0 to 1
    windows       length and mean period, like 2ms/250ms
    max_overhead  share of CPU time that recording may take, like 0.5%, or off
    labels        debug-info keys that become labels: at most two, by commas, or none
    enabled       false: nothing is recorded, and a range costs nothing

    With --service and --all it holds for processes that start later too, over their configuration
    (a file in the segment directory); with --pid for that process and those it forks. Only a
    process's owner and root may. Exits with 1 where a process did not take it.
    """
    if sum((show, reset, bool(settings))) != 1:
        raise click.UsageError(
            "give settings like sampling=0.1, or --reset, or --show; one of the three"
        )
    if not (pids or services or everything or show):
        raise click.UsageError("say which processes: --pid PID, --service GLOB or --all")
    if everything and (pids or services):
        raise click.UsageError("--all is every process: leave out --pid and --service")
    wish = None if show else Wish(given=ALONE) if reset else _parsed(settings)
    patterns = directories.exactly(places) or directories.patterns(config.load().directory)
    globs = ("*",) if everything or not (pids or services) else services
    if wish is None:
        _show(patterns, pids, globs, as_json)
        return
    problems = _set_later(patterns, globs, None if reset else wish)
    later = () if problems else globs
    chosen = _chosen(patterns, pids, globs)
    missing = sorted(set(pids) - {found.pid for found in chosen})
    problems += [
        f"pid {pid}: no observed process has it here; `opscope ps` lists them" for pid in missing
    ]
    outcomes = control.set_all(chosen, wish, wait)
    what = "--reset" if reset else " ".join(wish.words())
    _report(what, later, outcomes, problems, as_json)
    if problems or not all(outcome.done for outcome in outcomes):
        sys.exit(1)


def _parsed(settings: Sequence[str]) -> Wish:
    try:
        return parse(settings)
    except ConfigError as error:
        raise click.UsageError(str(error)) from error


def _set_later(patterns: Sequence[str], globs: Sequence[str], wish: Wish | None) -> list[str]:
    """Before the running ones are looked for: one that starts now either finds the file changed, or
    is found."""
    problems = []
    found = directories.find(patterns)
    if globs and not found:
        problems.append(
            f"{', '.join(patterns)}: no such directory yet, so nothing was set for processes that "
            "start later; settings for those stand in their environment or in "
            f"{config.CONFIG_PATH}"
        )
    for directory in found if globs else ():
        try:
            before = after = settings_rules.read_rules(directory)
            for glob in globs:
                after = settings_rules.changed(after, glob, wish)
            if after != before:
                settings_rules.write_rules(directory, after)
        except OpscopeError as error:
            problems.append(str(error))
    return problems


def _chosen(patterns: Sequence[str], pids: Sequence[int], globs: Sequence[str]) -> list[Found]:
    live = control.find(patterns)
    named = {found.path for pid in pids for found in control.by_pid(live, pid)}
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
                "asked": what,
                "later": list(globs),
                "processes": [
                    {**_named(one.found), "taken": one.done, "answer": one.text} for one in outcomes
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
    taken = sum(one.done for one in outcomes)
    now = f"taken by {taken} of {_processes(len(outcomes))}"
    if not outcomes:
        now = "no process that it concerns runs now"
    later = f"; holds for those that start later ({', '.join(globs)})" if globs else ""
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


def _named(found: Found) -> dict[str, Any]:
    return {
        "pid": found.pid,
        "service": found.service,
        "program": found.program,
        "uid": found.header.uid,
    }


def _show(
    patterns: Sequence[str], pids: Sequence[int], globs: Sequence[str], as_json: bool
) -> None:
    rows = []
    for found in _chosen(patterns, pids, globs):
        try:
            with control.opened(found) as segment:
                rows.append((found, " ".join(segment.wish().words()), segment.answer().text()))
        except OpscopeError as error:
            rows.append((found, "", str(error).removeprefix(f"pid {found.pid}: ")))
    rules = {directory: _rules(directory) for directory in directories.find(patterns)}
    if as_json:
        _print_json(
            {
                "processes": [
                    {**_named(found), **_in_force(found), "set": asked, "answer": answer}
                    for found, asked, answer in rows
                ],
                "later": {
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
            console.print(Text(f"later, in {directory}: {rule.service}: {rule.word}"))


def _rules(directory: str) -> list[Rule]:
    try:
        return settings_rules.read_rules(directory)
    except OpscopeError as error:
        click.echo(f"Error: {error}", err=True)
        return []


def _in_force(found: Found) -> dict[str, Any]:
    header = found.header
    return {
        "enabled": not header.is_disabled,
        "sampling": "windows" if header.window_ns else header.sampling_prob,
        "window_ns": header.window_ns,
        "period_ns": header.period_ns if header.window_ns else 0,
        "max_overhead": header.overhead_budget_ppb / 1e9 or None,
        "overhead_of_late": header.overhead_ppb / 1e9,
        "adaptations": header.adaptation_count,
        "refused_at_start": found.notes.get("settings.refused"),
        "labels": [key for key in found.notes.get("labels", "").split(",") if key],
    }


def _line(found: Found) -> str:
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
    return f"{sampling} max_overhead={budget} (of late {late}) labels={labels}" + (
        f"; refused as it started: {refused}" if refused else ""
    )


def _print_json(value: object) -> None:
    click.echo(json.dumps(value, indent=2))
