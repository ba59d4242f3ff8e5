"""Metrics that observed processes count themselves (opscope/metric.h), summed over a host.

Only metrics of the table count, so no process can fill the agent's memory with names. The segment
gives each metric's kind: counters are summed and survive their process; gauges are summed and peaks
maximized over live processes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain, repeat
from types import SimpleNamespace

from opscope.compilation_metrics import COMPILATION_METRICS
from opscope.host.budgets import LimitedPasses, Share
from opscope.metrics import MEASURE_LABELS, METRICS
from opscope.model_metrics import MODEL_METRICS
from opscope.segments import layout
from opscope.segments.bounds import saturated
from opscope.segments.segment import Measure

_OF_MODELS = {metric.name: len(metric.labels) - 1 for metric in MODEL_METRICS}
"""Their numbers of labels besides the service."""
_OF_COMPILATION = {metric.name: metric.source.partition(".")[2] for metric in COMPILATION_METRICS}
"""Their attributes in of_compilation()."""
NAMES = (
    _OF_MODELS.keys()
    | _OF_COMPILATION.keys()
    | {metric.name for metric in METRICS if metric.labels == MEASURE_LABELS}
)
# Pairs of service and label on a host; further pairs become one.
_PAIR_LIMIT = 512
_OTHER = ("other", "other")
_NOBODY = -1

# The metric's name, then its label values: service and the process's own label.
MeasureKey = tuple[str, tuple[str, str]]
Measures = Mapping[str, Mapping[tuple[str, str], int]]


# Each measure with its export key; several measures may share a key.
Keyed = tuple[tuple[MeasureKey, Measure], ...]


class MeasureTable:
    """The pairs of service and label that this host has seen, up to a limit."""

    def __init__(
        self,
        pairs: Iterable[tuple[str, str]] = (),
        limited: LimitedPasses | None = None,
        users: Iterable[int] = (),
    ) -> None:
        """`users`: the user who added each pair, as far as known."""
        known = dict.fromkeys(pairs)
        self._pairs = dict(zip(known, chain(users, repeat(_NOBODY)), strict=False))
        self._share = Share(_PAIR_LIMIT, limited or LimitedPasses(), "names")
        for user in self._pairs.values():
            self._share.take(user)

    def __len__(self) -> int:
        return len(self._pairs)

    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The pairs in the order of their arrival."""
        return tuple(self._pairs)

    def users(self) -> tuple[int, ...]:
        """The user who added each pair, in the same order."""
        return tuple(self._pairs.values())

    def keyed(self, service: str, measures: Iterable[Measure], user: int = 0) -> Keyed:
        """The exported measures, each with its key."""
        return tuple(
            ((one.name, self._pair(service, one.label, user)), one)
            for one in measures
            if one.name in NAMES
        )

    def _pair(self, service: str, label: str, user: int) -> tuple[str, str]:
        pair = (service, label)
        if pair not in self._pairs:
            if not self._share.asks(user):
                return _OTHER
            self._pairs[pair] = user
        return pair


def counted(keyed: Keyed) -> Counter[MeasureKey]:
    """The counters among the measures, summed by key."""
    found: Counter[MeasureKey] = Counter()
    for key, one in keyed:
        if one.kind == layout.METRIC_COUNTER:
            found[key] = saturated(found[key] + one.value)
    return found


def summed(counters: Mapping[MeasureKey, int], alive: Iterable[Keyed]) -> Measures:
    """By metric name, the host's value for each pair of labels: counters of all processes, gauges
    and peaks of the live ones."""
    values: Counter[MeasureKey] = Counter(counters)
    for keyed in alive:
        for key, one in keyed:
            if one.kind == layout.METRIC_GAUGE:
                values[key] = saturated(values[key] + one.value)
            elif one.kind == layout.METRIC_PEAK:
                values[key] = max(values[key], one.value)
    found: dict[str, dict[tuple[str, str], int]] = {}
    for (name, labels), value in values.items():
        found.setdefault(name, {})[labels] = value
    return found


def of_models(measures: Measures) -> SimpleNamespace:
    """The metrics of served models as attributes: by service, model, version and, if the metric has
    one, reason. Text of another form is a model without version."""
    return SimpleNamespace(
        **{
            name: {
                (service, *_parts(label, count)): value
                for (service, label), value in measures.get(name, {}).items()
            }
            for name, count in _OF_MODELS.items()
        }
    )


def of_compilation(measures: Measures) -> SimpleNamespace:
    """The metrics of compilers as attributes, by service and reason, stage or outcome; times, which
    processes count in nanoseconds, in seconds."""
    return SimpleNamespace(
        **{
            attribute: {
                labels: value / 1e9 if attribute.endswith("_s") else value
                for labels, value in measures.get(name, {}).items()
            }
            for name, attribute in _OF_COMPILATION.items()
        }
    )


def _parts(label: str, count: int) -> tuple[str, ...]:
    parts = tuple(label.split("/"))
    return parts if len(parts) == count else (label, *[""] * (count - 1))
