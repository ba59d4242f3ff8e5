"""The samples of a snapshot for each metric of the table, as Prometheus's formats need them.

Label names are valid in Prometheus. Bounds of classic histograms are powers of two or finer, and
their counts are sums of the recorder's buckets, so exact. Zero values are left out.
prometheus/text_page.py and prometheus/protobuf_page.py write the values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from opscope._native import lib
from opscope.metric_definition import SERIES_LABELS, Kind, Metric
from opscope.metrics import METRICS, PROCESS_METRICS
from opscope.server.exporter import Option

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from opscope.host.snapshot import SeriesKey, Snapshot


def of_process(snapshot: Snapshot) -> list[Metric]:
    """The metrics of the exporting process that are known."""
    return [metric for metric in PROCESS_METRICS if attrgetter(metric.source)(snapshot)]


Labels = tuple[tuple[str, str], ...]
T = TypeVar("T")

CLASSIC_METRICS = tuple(metric for metric in METRICS if not metric.is_histogram_count)
"""The metrics of a format with classic histograms."""

OCTAVES = Option(
    "octaves",
    1.0,
    "octaves between bounds of a classic histogram: 1 for powers of two, 0.125 for 8 bounds"
    " per octave",
    (0.125, 0.25, 0.5, 1.0, 2.0, 4.0),
)

# Bounds range from 2^-22 s (0.24 us) to 2^4 s; most relevant operators last between these.
_LOWEST, _HIGHEST = -22, 4
_EIGHTHS: int = lib.OPSCOPE_SEGMENT_BUCKETS_PER_OCTAVE
_RESERVED = {*SERIES_LABELS, "group", "le", "job", "instance"}


def labels_of(key: SeriesKey) -> Labels:
    """Names and values of a series' labels."""
    labels = dict(zip(SERIES_LABELS, (key.service, key.op, key.phase, key.framework), strict=True))
    if key.process is not None:
        labels["pid"] = str(key.process)
    if key.group:
        labels["group"] = key.group
    return with_labels(labels, key.labels)


def with_labels(labels: dict[str, str], more: Labels) -> Labels:
    """`labels`, and each of `more` under a name that is valid in Prometheus."""
    for name, value in more:
        name = label_name(name)
        # OpenTelemetry's rule for names that become equal.
        labels[name] = f"{labels[name]};{value}" if name in labels else value
    return tuple(labels.items())


def label_name(name: str) -> str:
    """A name that is valid in Prometheus and not one of Opscope's own."""
    name = re.sub(r"[^a-zA-Z0-9_]", "_", name)
    is_free = name and name not in _RESERVED and not name[0].isdigit() and name[:2] != "__"
    return name if is_free else f"label_{name}"


def sample_name(metric: Metric) -> str:
    return metric.prometheus_name + ("_total" if metric.kind is Kind.COUNTER else "")


def of_series(metric: Metric, snapshot: Snapshot) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The rows with a nonzero value, and the values.

    Operators' counters only grow: a row that was nonzero stays so.
    """
    import numpy as np

    values: NDArray[np.float64] = attrgetter(metric.source)(snapshot).astype(np.float64)
    rows = np.flatnonzero(~np.isnan(values) & (values != 0))
    return rows, values[rows]


def of_host(metric: Metric, snapshot: Snapshot) -> list[tuple[Labels, float]]:
    """The values without series, each with its labels, sorted by them."""
    values = attrgetter(metric.source)(snapshot)
    by_labels: Mapping[tuple[Any, ...], float] = values if metric.labels else {(): values}
    found: dict[frozenset[tuple[str, str]], tuple[Labels, float]] = {}
    for key, value in sorted(by_labels.items()):
        labels = _host_labels(metric, key)
        # Names that become equal in Prometheus are summed; info metrics stay 1.
        before = found.get(frozenset(labels), (labels, 0.0))[1]
        whole = max(before, value) if metric.name.endswith(".info") else before + value
        found[frozenset(labels)] = labels, float(whole)
    return list(found.values())


def _host_labels(metric: Metric, key: tuple[Any, ...]) -> Labels:
    """The labels of a value: the metric's own, and those in the key's last part."""
    labels = dict(zip(metric.labels, key, strict=False))
    return with_labels(labels, key[-1]) if len(key) > len(labels) else tuple(labels.items())


def has_run(snapshot: Snapshot) -> NDArray[np.bool_]:
    """(n,) whether a series has a histogram: one that never ran has none."""
    import numpy as np

    found: NDArray[np.bool_] = np.logical_or(
        snapshot.total_s != 0, snapshot.buckets.any(axis=(1, 2))
    )
    return found


class ClassicBuckets:
    """Classic buckets, `octaves` octaves wide: one of OCTAVES.choices.

    For each series, buckets below its shortest range are left out, except the one that ends where
    that range's bucket begins: PromQL assumes that the lowest bucket begins at 0. In a sum over
    series, an absent bucket equals its count, 0. A bucket stays once written, since counts only
    grow. Buckets above the longest range are always written: each holds all ranges, which a sum
    over series by `le` would otherwise miss.
    """

    def __init__(self, octaves: float = 1.0) -> None:
        import numpy as np

        step = round(octaves * _EIGHTHS)
        steps = range(_HIGHEST * _EIGHTHS, _LOWEST * _EIGHTHS - 1, -step)
        self._ends = np.array(steps[::-1])
        """log2 of each bound in seconds, in eighths."""
        self._summed = min(step, _EIGHTHS)
        """Number of adjacent recorder buckets to sum first."""
        self.bounds: list[float] = [_power(int(end)) for end in self._ends]
        """Bounds in seconds, without the last, infinite one."""

    def upto(
        self, snapshot: Snapshot, rows: slice = slice(None)
    ) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """Of these rows: (n, bounds + 1) ranges up to each bound, and all of them in the last
        column; (n,) the number of leading buckets to leave out."""
        import numpy as np

        from opscope.segments import layout
        from opscope.segments.bounds import SUM_LIMIT

        buckets = snapshot.buckets[rows]
        parts = buckets.shape[1] * (_EIGHTHS // self._summed)
        upto = np.zeros((len(buckets), parts + 1), np.uint64)
        one = layout.WEIGHT_ONE
        # With this many ranges, whole numbers are precise enough, and their sums do not wrap.
        if int(buckets.max(initial=0)) * math.prod(buckets.shape[1:]) > SUM_LIMIT:
            buckets, one = buckets // np.uint64(one), 1
        sums = buckets.reshape(len(buckets), parts, self._summed).sum(axis=2)
        np.cumsum(sums, axis=1, out=upto[:, 1:])
        # Column c sums the parts that end at most c parts above 2^(first_octave - 40) s.
        lowest = (snapshot.first_octave - layout.SECOND_LOG2) * _EIGHTHS
        columns = (self._ends - lowest) // self._summed
        found = upto[:, [*np.clip(columns, 0, parts), parts]]
        return found / one, np.count_nonzero(found[:, 1:] == 0, axis=1)


def _power(eighths: int) -> float:
    """2^(eighths / 8), equal on every machine: it uses square roots, which IEEE 754 defines to the
    last bit, instead of a mathematical library's power function."""
    octave, eighth = divmod(eighths, _EIGHTHS)
    root, power = 2.0, 1.0
    for bit in (4, 2, 1):
        root = math.sqrt(root)
        power *= root if eighth & bit else 1.0
    return math.ldexp(power, octave)


class PerSeries(Generic[T]):
    """A cache of an object made from each series' key and start, while the series exists.

    Thread-safe: the cache is replaced as a whole.
    """

    def __init__(self, make: Callable[[SeriesKey, int], T]) -> None:
        """`make` gets the key and the start time of the series."""
        self._make = make
        self._kept: tuple[tuple[SeriesKey, ...], tuple[int, ...], list[T]] = ((), (), [])

    def of(self, snapshot: Snapshot) -> Sequence[T]:
        keys, created = snapshot.keys, tuple(snapshot.created_unix_ns.tolist())
        known, begun, made = self._kept
        if (keys, created) == (known, begun):
            return made
        n = len(known)
        if keys[:n] == known and created[:n] == begun:
            made = made[:n] + [self._make(*one) for one in zip(keys[n:], created[n:], strict=True)]
        else:
            kept = dict(zip(zip(known, begun, strict=True), made, strict=True))
            series = zip(keys, created, strict=True)
            made = [kept[one] if one in kept else self._make(*one) for one in series]
        self._kept = keys, created, made
        return made
