"""The rules on stragglers (dashboards/rules/fleet.yml, alerts.yml) in NumPy, as PromQL has them.

That the two agree is shown by test_fleet_in_prometheus.py; how well they do, by test_stragglers.py.
"""

import numpy as np
from numpy.typing import NDArray

from tests.dashboards.fleet import EDGES, Fleet

LEAST_SAMPLES, LEAST_HOSTS, LEAST_EXCESS, SPREADS = 200, 5, 0.1, 5


def typical(fleet: Fleet, *, native: bool) -> NDArray[np.float64]:
    """(hosts, operators) seconds of a call; NaN where too few were recorded, or for comm."""
    runs = fleet.counts.sum(axis=-1)
    found = _medians(fleet.counts) if native else fleet.total_s / np.maximum(runs, 1)
    is_counted = (runs >= LEAST_SAMPLES) & (np.array(fleet.phases) != "comm")
    return np.where(is_counted, found, np.nan)


def _medians(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """As histogram_quantile has it: linear within the bucket that holds the half."""
    upto = np.cumsum(counts, axis=-1)
    half = upto[..., -1:] / 2
    bucket = np.argmax(upto >= half, axis=-1)
    here = np.take_along_axis(counts, bucket[..., None], axis=-1)[..., 0]
    before = np.take_along_axis(upto, bucket[..., None], axis=-1)[..., 0] - here
    share = (half[..., 0] - before) / np.maximum(here, 1)
    return np.asarray(EDGES[bucket] + share * (EDGES[bucket + 1] - EDGES[bucket]))


def slowness(fleet: Fleet, *, native: bool) -> NDArray[np.float64]:
    """(hosts,) of each its operators' median ratio to the median host of its version."""
    cells = typical(fleet, native=native)
    known = cells[:, ~np.isnan(cells).all(axis=0)]
    found = np.full(fleet.hosts, np.nan)
    for hosts in groups(fleet):
        found[hosts] = np.nanmedian(known[hosts] / np.nanmedian(known[hosts], axis=0), axis=1)
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
