"""The cost of an agent's page: from the host's totals to the bytes of a scrape.

Every series has a histogram and as many other values as possible; the numbers change between pages.
bench/agent.py measures the reading of segments.
"""

import statistics
from collections.abc import Iterable, Iterator
from time import perf_counter_ns

import numpy as np

from opscope.bench import Effort, Result
from opscope.errors import OpscopeError
from opscope.host.snapshot import COUNTER_COLUMNS, SELF_UNKNOWN, SeriesKey, Snapshot
from opscope.segments import variance
from opscope.server.blocks import in_blocks
from opscope.server.exporter import PageExporter, load

# The Accept header of Prometheus.
_TEXT = "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4"
_PLAIN = "text/plain;version=0.0.4"
_NATIVE = (
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
)

# Octaves in use on a host and in one series; the first one begins at 2^-22 s.
_OCTAVES, _SERIES_OCTAVES, _FIRST_OCTAVE = 14, 4, 18


def measure(effort: Effort) -> Iterator[Result]:
    few, many = effort.rounds_of(31), effort.rounds_of(7)
    for case, accept, series, rounds, bound in (
        ("text_2000_ms", _PLAIN, 2_000, few, 30.0),
        ("openmetrics_2000_ms", _TEXT, 2_000, few, None),
        ("native_2000_ms", _NATIVE, 2_000, few, 30.0),
        ("text_50000_ms", _PLAIN, 50_000, many, 500.0),
    ):
        value = _page_ms(accept, series, rounds)
        yield Result("scrape", case, value, "ms", None, bound, rounds)


def _page_ms(accept: str, series: int, rounds: int) -> float:
    exporter = load("prometheus")
    if not isinstance(exporter, PageExporter):
        raise OpscopeError("the installed exporter prometheus has no pages")
    snapshots = [snapshot_of(series, seed) for seed in range(2)]
    # The first page creates the labels, which are reused.
    _drained(exporter.page(snapshots[0], accept)[0])
    took = []
    for turn in range(rounds):
        start = perf_counter_ns()
        _drained(exporter.page(snapshots[turn % 2], accept)[0])
        took.append((perf_counter_ns() - start) / 1e6)
    return statistics.median(took)


def _drained(pieces: Iterable[bytes]) -> None:
    """Generates all of it, in the blocks that the agent sends."""
    for _ in in_blocks(pieces):
        pass


def snapshot_of(series: int, seed: int) -> Snapshot:
    """A host with that many series, all of which ran and were sampled."""
    random = np.random.default_rng(seed)
    keys = tuple(
        SeriesKey(
            f"service-{number % 20}", f"aten::operator_{number}", "forward", (("model_id", "m"),)
        )
        for number in range(series)
    )
    counters = random.integers(1, 1 << 40, (series, COUNTER_COLUMNS)).astype(np.uint64)
    counters[:, SELF_UNKNOWN] = 0
    buckets = np.zeros((series, _OCTAVES, 8), np.uint64)
    for first in range(_OCTAVES - _SERIES_OCTAVES):
        rows = np.arange(first, series, _OCTAVES - _SERIES_OCTAVES)
        shape = (len(rows), _SERIES_OCTAVES, 8)
        filled = random.integers(0, 1 << 30, shape) * random.integers(0, 2, shape)
        buckets[rows, first : first + _SERIES_OCTAVES] = filled
    created = np.full(series, 1_700_000_000_000_000_000)
    return Snapshot(
        created[0].item() + 1,
        keys,
        created,
        counters,
        buckets,
        _FIRST_OCTAVE,
        variances=random.random((series, variance.COLUMNS)) * 1e6,
    )
