"""The rows of one file that count under `other`, and what they counted under other series before.

host/state.py keeps them with the sums, so the next agent counts the same rows under the same
series.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from opscope.host.amounts import Amounts
from opscope.host.snapshot import COUNTER_COLUMNS
from opscope.segments import bounds, layout, variance
from opscope.segments.layout import U64


def _no_keys() -> U64:
    return np.zeros(0, np.uint64)


@dataclass(frozen=True)
class MovedRows:
    at_other: U64 = field(default_factory=_no_keys)
    """The keys (segment.Rows) of the rows under `other`, ascending."""
    stays: U64 = field(default_factory=_no_keys)
    """Those of them that had a series of their own, and never get one again."""
    elsewhere: Amounts = field(default_factory=Amounts.none)
    """By the series that the rows count under now: what they counted under earlier ones."""

    def __bool__(self) -> bool:
        return len(self.at_other) > 0 or len(self.elsewhere) > 0

    @property
    def nbytes(self) -> int:
        return self.at_other.nbytes + self.stays.nbytes + self.elsewhere.nbytes

    @cached_property
    def waiting(self) -> U64:
        """The keys of rows that get a series of their own once there is room."""
        keys: U64 = np.setdiff1d(self.at_other, self.stays, assume_unique=True)
        return keys

    def facts(self, row_of: Mapping[int, int]) -> dict[str, Any]:
        """As JSON; `row_of`: the numbers of series there."""
        known = self.elsewhere.moved(row_of)
        return {
            "at_other": self.at_other.tolist(),
            "stays": self.stays.tolist(),
            "series": known.series.tolist(),
            "counters": known.counters.tolist(),
            "variances": known.variances.tolist(),
            "places": known.places.tolist(),
            "weights": known.weights.tolist(),
        }


def from_facts(facts: Mapping[str, Any], series_count: int) -> MovedRows:
    """Raises ArithmeticError, LookupError, TypeError or ValueError if the facts are malformed."""
    known = Amounts.summed(
        _numbers(facts["series"], series_count).astype(np.intp),
        _rows(_numbers(facts["counters"], bounds.SUM_LIMIT), COUNTER_COLUMNS),
        np.array(facts["variances"], np.float64).reshape(-1, variance.COLUMNS),
        _numbers(facts["places"], series_count * layout.OCTAVES).astype(np.intp),
        _rows(_numbers(facts["weights"], bounds.SUM_LIMIT), layout.BUCKETS_PER_OCTAVE),
    )
    if not (np.isfinite(known.variances) & (known.variances >= 0)).all():
        raise ValueError("variances")
    if not np.isin(known.places // layout.OCTAVES, known.series).all():
        raise ValueError("places")
    at_other, stays = (np.unique(_numbers(facts[name], 1 << 64)) for name in ("at_other", "stays"))
    return MovedRows(at_other, stays, known)


def _numbers(values: Any, limit: int) -> U64:
    """Non-negative integers below the limit, nested like `values`."""
    # Not by NumPy's own conversion, which accepts fractions and texts.
    flat = np.array(values, object)
    if not all(type(one) is int and 0 <= one < limit for one in flat.reshape(-1).tolist()):
        raise ValueError("numbers")
    return flat.astype(np.uint64)


def _rows(values: U64, columns: int) -> U64:
    return values.reshape(-1, columns)
