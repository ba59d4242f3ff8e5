"""Metrics that observed processes count themselves (opscope/metric.h), summed over a host.

Only those of the table of metrics, so that no process can fill the agent's memory with names. How
the values of several processes make one is the segment's to say: counters add up and stay when
their process ends; gauges and peaks are of live processes, gauges added up, peaks the largest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from opscope.agent import layout
from opscope.metrics import MEASURE_LABELS, METRICS

NAMES = frozenset(metric.name for metric in METRICS if metric.labels == MEASURE_LABELS)
# Pairs of service and label on a host; all others are one.
_PAIR_LIMIT = 256
_OTHER = ("other", "other")

# Name, then the values of its labels: service and the process's own label.
MeasureKey = tuple[str, tuple[str, str]]
Measures = Mapping[str, Mapping[tuple[str, str], int]]


class Measure(NamedTuple):
    """One metric as a segment has it."""

    name: str
    label: str
    kind: int
    value: int


# Each with the key under which it is exported; a key may stand there twice.
Keyed = tuple[tuple[MeasureKey, Measure], ...]


class MeasureTable:
    """The pairs of service and label that this host has seen; at most so many."""

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        self._pairs = dict.fromkeys(pairs)

    def __len__(self) -> int:
        return len(self._pairs)

    def pairs(self) -> tuple[tuple[str, str], ...]:
        """In the order they came."""
        return tuple(self._pairs)

    def keyed(self, service: str, measures: Iterable[Measure]) -> Keyed:
        """The measures that are exported."""
        return tuple(
            ((one.name, self._pair(service, one.label)), one)
            for one in measures
            if one.name in NAMES
        )

    def _pair(self, service: str, label: str) -> tuple[str, str]:
        pair = (service, label)
        if pair not in self._pairs and len(self._pairs) >= _PAIR_LIMIT:
            return _OTHER
        self._pairs[pair] = None
        return pair


def counted(keyed: Keyed) -> Counter[MeasureKey]:
    """The counters among them."""
    found: Counter[MeasureKey] = Counter()
    for key, one in keyed:
        if one.kind == layout.METRIC_COUNTER:
            found[key] += one.value
    return found


def summed(counters: Mapping[MeasureKey, int], alive: Iterable[Keyed]) -> Measures:
    """By name, the host's value for each pair of labels, from the counters of all processes and
    what the live ones have."""
    values: Counter[MeasureKey] = Counter(counters)
    for keyed in alive:
        for key, one in keyed:
            if one.kind == layout.METRIC_GAUGE:
                values[key] += one.value
            elif one.kind == layout.METRIC_PEAK:
                values[key] = max(values[key], one.value)
    found: dict[str, dict[tuple[str, str], int]] = {}
    for (name, labels), value in values.items():
        found.setdefault(name, {})[labels] = value
    return found
