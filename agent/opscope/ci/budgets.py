"""Judge the operators of one block by limits that a test states, and by a baseline. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import NamedTuple

TOTAL = "total"
"""The name of a budget of all operators together."""


class Used(NamedTuple):
    """What one operator took in a block."""

    calls: int
    self_ms: float


@dataclass(frozen=True)
class Excess:
    """One operator above its limit."""

    name: str
    what: str
    """`calls`, `self ms`, or `new` for an operator that the baseline lacks."""
    limit: float
    used: float
    source: str
    """Where the limit comes from: `budget` or `baseline`."""


def over_budget(
    used: Mapping[str, Used], calls: Mapping[str, int], self_ms: Mapping[str, float]
) -> list[Excess]:
    """The limits that are exceeded. The keys of `calls` and `self_ms` are operators, patterns with
    * and ?, whose limit is for all matching operators together, or `total`."""
    found = []
    for pattern, limit in calls.items():
        count = sum(one.calls for one in _matching(used, pattern))
        if count > limit:
            found.append(Excess(pattern, "calls", limit, count, "budget"))
    for pattern, most in self_ms.items():
        time = sum(one.self_ms for one in _matching(used, pattern))
        if time > most:
            found.append(Excess(pattern, "self ms", most, time, "budget"))
    return found


def over_baseline(
    used: Mapping[str, Used],
    baseline: Mapping[str, Used],
    *,
    more_calls: float,
    more_time: float | None,
) -> list[Excess]:
    """What grew since the baseline. `more_calls` and `more_time`: the allowed growth, 0.1 is 10 %;
    None: times are not judged."""
    found = []
    for name, one in sorted(used.items()):
        before = baseline.get(name)
        if before is None:
            found.append(Excess(name, "new", 0, one.calls, "baseline"))
            continue
        if one.calls > before.calls * (1 + more_calls):
            found.append(Excess(name, "calls", before.calls, one.calls, "baseline"))
        if more_time is not None and one.self_ms > before.self_ms * (1 + more_time):
            found.append(Excess(name, "self ms", before.self_ms, one.self_ms, "baseline"))
    return found


def report(excesses: Sequence[Excess]) -> str:
    """A table of the excesses, for the message of a failed test."""
    count = len(excesses)
    rows = [("operator", "", "limit", "used", "")]
    rows += [
        (one.name, one.what, _number(one.limit), _number(one.used), _note(one)) for one in excesses
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(5)]
    lines = [
        "  ".join(
            text.rjust(width) if i in (2, 3) else text.ljust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    heading = f"{count} operator limit{' is' if count == 1 else 's are'} exceeded:"
    return "\n".join([heading, *(f"  {line}" for line in lines)])


def _matching(used: Mapping[str, Used], pattern: str) -> Iterable[Used]:
    return (one for name, one in used.items() if pattern == TOTAL or fnmatchcase(name, pattern))


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"


def _note(one: Excess) -> str:
    if one.source == "budget":
        return "(budget)"
    if one.what == "new":
        return "(not in the baseline)"
    grown = f", +{100 * (one.used / one.limit - 1):.0f} %" if one.limit else ""
    return f"(baseline{grown})"
