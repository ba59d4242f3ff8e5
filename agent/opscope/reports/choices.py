"""What a view of operators can be sorted and grouped by; view.py computes it.

A file of its own: the command line knows its options without NumPy.
"""

from __future__ import annotations

SORT_FIELDS = {
    "total": "total_share",
    "self": "self_share",
    "calls": "calls_per_s",
    "p50": "p50_s",
    "p95": "p95_s",
    "p99": "p99_s",
    "bytes": "bytes_per_s",
}
SORTS = (*SORT_FIELDS, "op")
GROUPED_BY = ("operator", "process", "labels")
"""What one row is of."""
