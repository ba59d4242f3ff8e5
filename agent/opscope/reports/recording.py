"""A recording: what some processes of a host did over a while, in slices, to be kept in a file.

Slices, because the spread between them is what tells a difference from chance
(agent/comparison.py). Times are of all threads together. The file is gzipped JSON, described at
`Recording.save`; reading one trusts nothing in it.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from opscope.agent import layout
from opscope.agent.host import Host
from opscope.agent.snapshot import (
    SAMPLES,
    SELF_NS,
    SELF_UNKNOWN,
    TOTAL_NS,
    WEIGHT,
    Process,
    Snapshot,
)
from opscope.errors import AgentError

_FORMAT = "opscope recording"
_VERSION = 1
_BYTES_LIMIT = 256 << 20
_SERIES_LIMIT = 100_000


class Operator(NamedTuple):
    name: str
    phase: str


class Slice(NamedTuple):
    """One operator in one slice of time."""

    samples: int
    """Ranges recorded; the rest is estimated from them."""
    calls: float
    total_s: float
    self_s: float | None
    """None: not known."""


@dataclass(frozen=True)
class Selection:
    """Which processes: all that agree with whatever is given."""

    service: str | None = None
    version: str | None = None
    """`service.version`, as the process has it from OpenTelemetry's variables."""
    pids: frozenset[int] = frozenset()

    @classmethod
    def parse(cls, text: str) -> Selection:
        """From SERVICE or SERVICE@VERSION; a version has no @ in it."""
        service, at, version = text.rpartition("@")
        return cls(service, version) if at else cls(text)

    def __str__(self) -> str:
        if self.pids:
            return ", ".join(f"pid {pid}" for pid in sorted(self.pids))
        if self.service is None:
            return "all processes"
        return self.service if self.version is None else f"{self.service}@{self.version}"

    def takes(self, process: Process) -> bool:
        return (
            (not self.pids or process.pid in self.pids)
            and self.service in (None, process.service)
            and self.version in (None, process.notes.get("service.version", ""))
        )


@dataclass(frozen=True)
class Recording:
    what: str
    """The selection, in words."""
    started_unix_ns: int
    seconds: tuple[float, ...]
    """How long each slice was."""
    processes: int
    """How many there were, over the whole time."""
    operators: dict[Operator, tuple[Slice, ...]]
    """For each operator that ran a slice for each of `seconds`."""

    def save(self, path: str) -> None:
        """Writes the file, whole or not at all.

        One JSON object: `format`, `version`, `what`, `started_unix_ns`, `seconds`, `processes`,
        and `operators`: objects with `name`, `phase` and `slices`, each [samples, calls, total
        seconds, self seconds or null]. Raises AgentError where it cannot be written.
        """
        operators = [
            {"name": name, "phase": phase, "slices": slices}
            for (name, phase), slices in self.operators.items()
        ]
        whole = {
            "format": _FORMAT,
            "version": _VERSION,
            "what": self.what,
            "started_unix_ns": self.started_unix_ns,
            "seconds": self.seconds,
            "processes": self.processes,
            "operators": operators,
        }
        new = f"{path}.{os.getpid()}.new"
        try:
            with gzip.open(new, "wt", encoding="utf-8") as file:
                json.dump(whole, file)
            os.replace(new, path)
        except OSError as error:
            raise AgentError(f"cannot write {path}: {error.strerror}") from error

    @classmethod
    def load(cls, path: str) -> Recording:
        """Raises AgentError, which says why, where the file is not a recording."""
        try:
            with gzip.open(path, "rb") as file:
                raw = file.read(_BYTES_LIMIT + 1)
            if len(raw) > _BYTES_LIMIT:
                raise ValueError("too large")
            return _from_json(json.loads(raw))
        except FileNotFoundError as error:
            raise AgentError(f"{path}: no such file") from error
        except (OSError, EOFError, zlib.error, ValueError, TypeError, KeyError) as error:
            made = "opscope record -o FILE makes one"
            raise AgentError(f"{path} is not a recording ({error}); {made}") from error


def _from_json(whole: Any) -> Recording:
    if not isinstance(whole, dict) or whole.get("format") != _FORMAT:
        raise ValueError("it does not say that it is one")
    if whole["version"] != _VERSION:
        raise ValueError(f"its version is {whole['version']!r}, known is {_VERSION}")
    seconds = tuple(_number(value) for value in whole["seconds"])
    if not all(seconds):
        raise ValueError("an empty slice")
    operators = {}
    for of_one in whole["operators"]:
        slices = tuple(_slice(*values) for values in of_one["slices"])
        if len(slices) != len(seconds):
            raise ValueError(f"{len(slices)} slices in place of {len(seconds)}")
        operators[Operator(str(of_one["name"]), str(of_one["phase"]))] = slices
    started, processes = _number(whole["started_unix_ns"]), _number(whole["processes"])
    return Recording(str(whole["what"]), int(started), seconds, int(processes), operators)


def _slice(samples: object, calls: object, total_s: object, self_s: object) -> Slice:
    known = None if self_s is None else _number(self_s)
    return Slice(int(_number(samples)), _number(calls), _number(total_s), known)


def _number(value: object) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < math.inf:
        return float(value)
    raise ValueError(f"{value!r} is not a number from 0 on")


def record(
    patterns: Sequence[str],
    selections: Sequence[Selection],
    *,
    slices: int,
    slice_s: float,
    sleep: Callable[[float], None] = time.sleep,
) -> list[Recording]:
    """A recording for each selection, of the same `slices` of `slice_s` seconds each.

    Raises AgentError, at once, where nothing of a selection is observed as it begins.
    """
    host = Host(patterns, consume=False, max_series=_SERIES_LIMIT, by_process=True)
    before = host.collect()
    for selection in selections:
        _check_is_there(selection, before)
    deltas: list[Snapshot] = []
    seconds: list[float] = []
    for _ in range(slices):
        sleep(slice_s)
        now = host.collect()
        deltas.append(now.since(before))
        seconds.append(max(now.time_unix_ns - before.time_unix_ns, 1) / 1e9)
        before = now
    return [_recording(selection, deltas, seconds) for selection in selections]


def _recording(
    selection: Selection, deltas: Sequence[Snapshot], seconds: Sequence[float]
) -> Recording:
    chosen = {
        (process.pid, process.process_start)
        for delta in deltas
        for process in delta.processes
        if selection.takes(process) and (process.is_alive or _ran(process, delta))
    }
    operators: dict[Operator, list[Slice]] = {}
    for number, delta in enumerate(deltas):
        for operator, found in _slices(delta, {pid for pid, _ in chosen}):
            row = operators.setdefault(operator, [Slice(0, 0.0, 0.0, 0.0)] * len(deltas))
            row[number] = _sum(row[number], found)
    first = deltas[0].time_unix_ns - round(seconds[0] * 1e9)
    by_name = {operator: tuple(row) for operator, row in sorted(operators.items())}
    return Recording(str(selection), first, tuple(seconds), len(chosen), by_name)


def _check_is_there(selection: Selection, now: Snapshot) -> None:
    """Before the wait rather than after it."""
    alive = [process for process in now.processes if process.is_alive]
    if not any(map(selection.takes, alive)):
        seen = ", ".join(sorted(set(map(_name, alive)))) or "none"
        what = "process is observed"
        if selection != Selection():
            what = f"observed process is of {selection}; observed: {seen}"
        raise AgentError(f"no {what}; `opscope ps` says which are, and why others are not")


def _ran(process: Process, delta: Snapshot) -> bool:
    rows = zip(delta.keys, delta.counters.tolist(), strict=True)
    return any(key.process == process.pid and row[SAMPLES] for key, row in rows)


def _slices(delta: Snapshot, pids: set[int]) -> Iterator[tuple[Operator, Slice]]:
    for key, row in zip(delta.keys, delta.counters.tolist(), strict=True):
        if key.process in pids and row[SAMPLES]:
            self_s = None if row[SELF_UNKNOWN] else row[SELF_NS] / 1e9
            calls = row[WEIGHT] / layout.WEIGHT_ONE
            found = Slice(row[SAMPLES], calls, row[TOTAL_NS] / 1e9, self_s)
            yield Operator(key.op, key.phase), found


def _sum(a: Slice, b: Slice) -> Slice:
    self_s = None if a.self_s is None or b.self_s is None else a.self_s + b.self_s
    return Slice(a.samples + b.samples, a.calls + b.calls, a.total_s + b.total_s, self_s)


def _name(process: Process) -> str:
    version = process.notes.get("service.version")
    return f"{process.service}@{version}" if version else process.service
