"""A recording: operators' times in some processes of a host, in slices of time, kept in a file.

The spread between slices is the measure of chance (reports/comparison.py). Times are the sum over
all threads. The file is gzipped JSON, described at `Recording.save`; the reader validates all of
it.
"""

from __future__ import annotations

import gzip
import json
import math
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from opscope.errors import AgentError
from opscope.host.host import Host
from opscope.host.snapshot import (
    SAMPLES,
    SELF_NS,
    SELF_UNKNOWN,
    TOTAL_NS,
    WEIGHT,
    Process,
    Snapshot,
)
from opscope.replace_file import replace_file
from opscope.reports.certainty import error_of
from opscope.segments import layout

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
    """Number of recorded ranges, from which the other fields are estimated."""
    calls: float
    total_s: float
    self_s: float | None
    """None: not known."""
    calls_error: float = 0.0
    """Standard error; 0 if every range was recorded, and in files of older versions."""
    self_error: float | None = 0.0
    """Standard error of `self_s`; None: unknown."""


@dataclass(frozen=True)
class Selection:
    """Selects processes: those that match all fields given."""

    service: str | None = None
    version: str | None = None
    """`service.version`, from the process's OpenTelemetry variables."""
    pids: frozenset[int] = frozenset()

    @classmethod
    def parse(cls, text: str) -> Selection:
        """From SERVICE or SERVICE@VERSION; a version contains no @."""
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
    """The selection, as text."""
    started_unix_ns: int
    seconds: tuple[float, ...]
    """Length of each slice, in seconds."""
    processes: int
    """Number of selected processes over the whole recording."""
    operators: dict[Operator, tuple[Slice, ...]]
    """For each operator that ran, one slice for each of `seconds`."""

    def save(self, path: str) -> None:
        """Writes the file atomically.

        One JSON object: `format`, `version`, `what`, `started_unix_ns`, `seconds`, `processes`,
        and `operators`: objects with `name`, `phase` and `slices`, each [samples, calls, total
        seconds, self seconds or null, standard error of the calls, that of the self seconds or
        null]; older files end with the self seconds. Raises AgentError on failure.
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
        try:
            replace_file(path, gzip.compress(json.dumps(whole).encode()))
        except OSError as error:
            raise AgentError(f"cannot write {path}: {error.strerror}") from error

    @classmethod
    def load(cls, path: str) -> Recording:
        """Raises AgentError, with the reason, if the file is not a recording."""
        try:
            with gzip.open(path, "rb") as file:
                raw = file.read(_BYTES_LIMIT + 1)
            if len(raw) > _BYTES_LIMIT:
                raise ValueError("too large")
            return _from_json(json.loads(raw))
        except FileNotFoundError as error:
            raise AgentError(f"{path}: no such file") from error
        except (OSError, EOFError, zlib.error, ValueError, TypeError, KeyError) as error:
            made = "opscope record -o FILE writes one"
            raise AgentError(f"{path} is not a recording ({error}); {made}") from error


def _from_json(whole: Any) -> Recording:
    if not isinstance(whole, dict) or whole.get("format") != _FORMAT:
        raise ValueError("it has no mark of one")
    if whole["version"] != _VERSION:
        raise ValueError(f"its version is {whole['version']!r}, not {_VERSION}")
    seconds = tuple(_number(value) for value in whole["seconds"])
    if not all(seconds):
        raise ValueError("an empty slice")
    operators = {}
    for of_one in whole["operators"]:
        slices = tuple(_slice(*values) for values in of_one["slices"])
        if len(slices) != len(seconds):
            raise ValueError(f"{len(slices)} slices instead of {len(seconds)}")
        operators[Operator(str(of_one["name"]), str(of_one["phase"]))] = slices
    started, processes = _number(whole["started_unix_ns"]), _number(whole["processes"])
    return Recording(str(whole["what"]), int(started), seconds, int(processes), operators)


def _slice(
    samples: object,
    calls: object,
    total_s: object,
    self_s: object,
    calls_error: object = 0.0,
    self_error: object = 0.0,
) -> Slice:
    return Slice(
        int(_number(samples)),
        _number(calls),
        _number(total_s),
        _known(self_s),
        _number(calls_error),
        _known(self_error),
    )


def _known(value: object) -> float | None:
    return None if value is None else _number(value)


def _number(value: object) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < math.inf:
        return float(value)
    raise ValueError(f"{value!r} is not a number of 0 or more")


def record(
    patterns: Sequence[str],
    selections: Sequence[Selection],
    *,
    slices: int,
    slice_s: float,
    sleep: Callable[[float], None] = time.sleep,
) -> list[Recording]:
    """A recording for each selection, of the same `slices` of `slice_s` seconds each.

    Raises AgentError at once if a selection matches no observed process at the start.
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


def whole(patterns: Sequence[str]) -> dict[Operator, Slice]:
    """All that the processes of these directories recorded since their starts, ended ones too."""
    host = Host(patterns, consume=False, max_series=_SERIES_LIMIT)
    found: dict[Operator, Slice] = {}
    for operator, one in _slices(host.collect(), None):
        found[operator] = _sum(found[operator], one) if operator in found else one
    return found


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
    """Fails before the wait instead of after it."""
    alive = [process for process in now.processes if process.is_alive]
    if not any(map(selection.takes, alive)):
        seen = ", ".join(sorted(set(map(_name, alive)))) or "none"
        what = "process is observed"
        if selection != Selection():
            what = f"observed process matches {selection}; observed: {seen}"
        raise AgentError(f"no {what}; `opscope ps` lists them, and why others are not observed")


def _ran(process: Process, delta: Snapshot) -> bool:
    rows = zip(delta.keys, delta.counters.tolist(), strict=True)
    return any(key.process == process.pid and row[SAMPLES] for key, row in rows)


def _slices(delta: Snapshot, pids: set[int] | None) -> Iterator[tuple[Operator, Slice]]:
    errors = zip(delta.calls_variance.tolist(), delta.self_variance.tolist(), strict=True)
    rows = zip(delta.keys, delta.counters.tolist(), errors, strict=True)
    for key, row, (calls_variance, self_variance) in rows:
        if (pids is None or key.process in pids) and row[SAMPLES]:
            self_s = None if row[SELF_UNKNOWN] else row[SELF_NS] / 1e9
            calls = row[WEIGHT] / layout.WEIGHT_ONE
            found = Slice(
                row[SAMPLES],
                calls,
                row[TOTAL_NS] / 1e9,
                self_s,
                math.sqrt(calls_variance),
                error_of(self_variance),
            )
            yield Operator(key.op, key.phase), found


def _sum(a: Slice, b: Slice) -> Slice:
    self_s = None if a.self_s is None or b.self_s is None else a.self_s + b.self_s
    self_error = None
    if a.self_error is not None and b.self_error is not None:
        self_error = math.hypot(a.self_error, b.self_error)
    return Slice(
        a.samples + b.samples,
        a.calls + b.calls,
        a.total_s + b.total_s,
        self_s,
        math.hypot(a.calls_error, b.calls_error),
        self_error,
    )


def _name(process: Process) -> str:
    version = process.notes.get("service.version")
    return f"{process.service}@{version}" if version else process.service
