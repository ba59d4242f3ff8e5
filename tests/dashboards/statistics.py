"""The rules on stragglers (dashboards/rules/fleet.yml, alerts.yml), computed in NumPy.

test_in_prometheus.py shows that both agree; test_stragglers.py measures how well they detect.
"""

import numpy as np
from numpy.typing import NDArray

from opscope.segments.layout import BUCKETS_PER_OCTAVE
from tests.dashboards.fleet import EDGES, Fleet

MARGIN, LEAST_BOUNDS = 0.1, 2
CLASSIC_OCTAVES = 1
LEAST_SAMPLES, LEAST_HOSTS, LEAST_EXCESS, SPREADS = 200, 5, 0.1, 5


def typical(fleet: Fleet, *, native: bool) -> NDArray[np.float64]:
    """(hosts, operators) seconds of a call; NaN if too few were recorded, or for communication."""
    runs = fleet.counts.sum(axis=-1)
    is_counted = (runs >= LEAST_SAMPLES) & (np.array(fleet.phases) != "comm")
    if native:
        return np.where(is_counted, _medians(fleet.counts, EDGES), np.nan)
    coarse, edges = _classic(fleet.counts)
    return np.where(is_counted & _is_spread(coarse), _medians(coarse, edges), np.nan)


def _classic(counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The same, in classic buckets."""
    by_octave = counts.reshape(*counts.shape[:-1], -1, BUCKETS_PER_OCTAVE).sum(axis=-1)
    exponents = np.rint(np.log2(EDGES[::BUCKETS_PER_OCTAVE])).astype(int)
    ends = [number for number, one in enumerate(exponents) if one % CLASSIC_OCTAVES == 0]
    if ends[0] != 0 or ends[-1] != len(exponents) - 1:
        raise AssertionError("the buckets do not begin and end with classic ones")
    return np.add.reduceat(by_octave, ends[:-1], axis=-1), 2.0 ** exponents[ends]


def _is_spread(counts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether at least two bounds have more than a tenth of the runs on both sides."""
    share = np.cumsum(counts, axis=-1) / np.maximum(counts.sum(axis=-1, keepdims=True), 1)
    within: NDArray[np.intp] = ((share > MARGIN) & (share < 1 - MARGIN)).sum(axis=-1)
    return within >= LEAST_BOUNDS


def _medians(counts: NDArray[np.int64], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """As histogram_quantile computes it: linear within the bucket with the median."""
    upto = np.cumsum(counts, axis=-1)
    half = upto[..., -1:] / 2
    bucket = np.argmax(upto >= half, axis=-1)
    here = np.take_along_axis(counts, bucket[..., None], axis=-1)[..., 0]
    before = np.take_along_axis(upto, bucket[..., None], axis=-1)[..., 0] - here
    share = (half[..., 0] - before) / np.maximum(here, 1)
    return np.asarray(edges[bucket] + share * (edges[bucket + 1] - edges[bucket]))


def slowness(fleet: Fleet, *, native: bool) -> NDArray[np.float64]:
    """(hosts,) the median over operators of each host's ratio to the median host of its version."""
    cells = typical(fleet, native=native)
    found = np.full(fleet.hosts, np.nan)
    for hosts in groups(fleet):
        known = cells[hosts][:, ~np.isnan(cells[hosts]).all(axis=0)]
        judged = ~np.isnan(known).all(axis=1)
        ratios = known[judged] / np.nanmedian(known, axis=0)
        found[hosts[judged]] = np.nanmedian(ratios, axis=1)
    return found


def groups(fleet: Fleet) -> list[NDArray[np.int64]]:
    """The hosts of each version."""
    versions = np.resize(np.array(fleet.versions or ("",)), fleet.hosts)
    return [np.flatnonzero(versions == version) for version in np.unique(versions)]


def alarms(fleet: Fleet, *, native: bool) -> set[int]:
    """The hosts that OpscopeStraggler names."""
    scores = slowness(fleet, native=native)
    named: set[int] = set()
    for hosts in groups(fleet):
        known = hosts[np.isfinite(scores[hosts])]
        if len(known) < LEAST_HOSTS:
            continue
        low, middle, high = np.quantile(scores[known], [0.25, 0.5, 0.75])
        limit = max(SPREADS * (high - low) / 1.349, LEAST_EXCESS)
        named.update(known[scores[known] - middle > limit].tolist())
    return named
