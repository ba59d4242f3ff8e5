"""PromQL in pieces: names from the table of metrics, and histograms of either kind."""

from __future__ import annotations

from opscope.fleet.promql import name

__all__ = ["duration_buckets", "name", "quantile", "rate"]


def rate(metric: str, where: str = "") -> str:
    """Per second, over what the panel shows between two points, or more."""
    return f"rate({name(metric)}{braced(where)}[$__rate_interval])"


def braced(where: str) -> str:
    return f"{{{where}}}" if where else ""


def quantile(p: str, where: str, by: str = "", joined: str = "") -> str:
    """Of durations, by labels; `joined`: what each series is multiplied with to get labels."""
    native = rate("opscope.op.duration", where)
    classic = native.replace(name("opscope.op.duration"), f"{name('opscope.op.duration')}_bucket")
    of_native = f" by ({by})" if by else ""
    of_classic = ", ".join(filter(None, ("le", by)))
    return (
        f"histogram_quantile({p}, sum{of_native} ({native}{joined}))"
        f" or histogram_quantile({p}, sum by ({of_classic}) ({classic}{joined}))"
    )


def duration_buckets(where: str) -> tuple[str, str]:
    """For a heat map: of the native histogram, and of the classic one where that is absent."""
    native = rate("opscope.op.duration", where)
    classic = native.replace(name("opscope.op.duration"), f"{name('opscope.op.duration')}_bucket")
    absent = f"absent({name('opscope.op.duration')}{braced(where)})"
    return f"sum ({native})", f"sum by (le) ({classic}) and on () {absent}"
