"""Metrics that a library of Python counts itself (opscope/metric.h): exact, whatever is sampled.

While a recorder runs, the value is in the process's segment, and a host agent exports the metrics
whose names are in opscope/metrics.py.
"""

from __future__ import annotations

from typing import Any

from opscope._native import lib

_TEXT_LIMIT = 127
_made: dict[tuple[str, str], Any] = {}


class Metric:
    """One 64-bit value with a name and a label; lives as long as the process.

    Equal names and labels are one metric. Raises ValueError for a name or label that is empty or
    longer than 127 bytes. Adding is one atomic addition, on any thread.
    """

    __slots__ = ("_core",)

    def __init__(self, name: str, label: str, *, is_counter: bool = True) -> None:
        core = _made.get((name, label))
        if core is None:
            kind = lib.OPSCOPE_METRIC_COUNTER if is_counter else lib.OPSCOPE_METRIC_GAUGE
            texts = name.encode(), label.encode()
            if not all(0 < len(text) <= _TEXT_LIMIT and b"\0" not in text for text in texts):
                raise ValueError(f"a metric's name and label have 1 to {_TEXT_LIMIT} bytes")
            core = lib.opscope_py_metric(*texts, kind)
            if not core:
                raise MemoryError("no memory for a metric")
            _made[name, label] = core
        self._core = core

    def add(self, amount: int = 1) -> None:
        """Adds; a negative amount lowers a gauge."""
        lib.opscope_py_metric_add(self._core, amount)

    def read(self) -> int:
        """The value in this process."""
        return int(lib.opscope_metric_read(self._core))
