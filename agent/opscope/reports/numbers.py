"""Numbers as text for people: three digits and a unit."""

from __future__ import annotations


def seconds(value: float) -> str:
    """Three digits and a unit; "-" for NaN."""
    if value != value:
        return "-"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size * 0.9995:
            return f"{_three_digits(value / size)} {unit}"
    return f"{value * 1e9:.0f} ns"


def rate(value: float) -> str:
    """Three digits and k, M or G."""
    for suffix, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= size * 0.9995:
            return f"{_three_digits(value / size)}{suffix}"
    return _three_digits(value)


def _three_digits(value: float) -> str:
    if value >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"
