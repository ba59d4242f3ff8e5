"""PromQL in pieces: names from the table of metrics, and histograms of either kind."""

from __future__ import annotations

from opscope.fleet.promql import name

__all__ = ["BY_VERSION", "duration_buckets", "name", "quantile", "quantile_now", "rate"]

# Of all hosts there is a sum, by a rule; of some that are chosen, it is made of their series. A
# series without a label is one where that is empty: All, `.*`, chooses the sums, which have no
# instance, and by the second matcher, of a label that there never is, no series of hosts. That one
# VictoriaMetrics does not heed: what it reads for nothing is then left out, as there are sums.
_OF_CHOSEN_HOSTS = 'every_host!~"$host"'
_SUMS = "opscope:op_duration_seconds:rate5m"

# Without one where it is not known, or a host has several of a service at a time.
BY_VERSION = " * on (instance, service) group_left (version) opscope:host_version:info"


def rate(metric: str, where: str = "") -> str:
    """Per second, over what the panel shows between two points, or more."""
    return _rate(name(metric), where, "$__rate_interval")


def _rate(series: str, where: str, window: str) -> str:
    return f"rate({series}{braced(where)}[{window}])"


def braced(where: str) -> str:
    return f"{{{where}}}" if where else ""


def quantile(p: str, where: str, by: str = "") -> str:
    """Of durations, by labels; `where` chooses hosts by the variable `host`."""
    native, classic = _durations(where, with_version="version" in by)
    of_native = f" by ({by})" if by else ""
    of_classic = ", ".join(filter(None, ("le", by)))
    return (
        f"histogram_quantile({p}, sum{of_native} ({native}))"
        f" or histogram_quantile({p}, sum by ({of_classic}) ({classic}))"
    )


def quantile_now(p: str, where: str, by: str) -> str:
    """Of durations on each host, whichever are chosen: only for a moment, as it reads them all."""
    histogram = name("opscope.op.duration")
    native = _rate(histogram, where, "5m")
    classic = _rate(f"{histogram}_bucket", where, "5m")
    return (
        f"histogram_quantile({p}, sum by ({by}) ({native}))"
        f" or histogram_quantile({p}, sum by (le, {by}) ({classic}))"
    )


def duration_buckets(where: str) -> tuple[str, str]:
    """For a heat map: of the native histogram, and of the classic one where that is absent."""
    native, classic = _durations(where)
    return f"sum ({native})", f"sum by (le) ({classic}) and on () absent({native})"


def _durations(where: str, *, with_version: bool = False) -> tuple[str, str]:
    """Native histograms, and the buckets of classic ones."""
    histogram = name("opscope.op.duration")
    joined = BY_VERSION if with_version else ""

    def either(series: str, of_kind: str) -> str:
        chosen = _rate(series, f"{where}, {_OF_CHOSEN_HOSTS}", "$__rate_interval")
        sums = f"{_SUMS}{{{where}, {of_kind}}}"
        return f"{sums} or {chosen}{joined} unless on () {sums}"

    return either(histogram, 'le=""'), either(f"{histogram}_bucket", 'le!=""')
