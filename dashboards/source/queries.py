"""Parts of PromQL queries: names from the table of metrics, histograms of either kind."""

from __future__ import annotations

from opscope.fleet.promql import name

__all__ = [
    "BY_VERSION",
    "calls",
    "duration_buckets",
    "exemplars",
    "name",
    "quantile",
    "quantile_now",
    "rate",
]

# For all hosts there is a recorded sum; for selected hosts, the query reads their series. An absent
# label matches as empty: All, `.*`, selects the sums, which have no instance, and the second
# matcher, on a label that never exists, then excludes the hosts' series. VictoriaMetrics ignores
# that matcher; the unneeded series that it reads are dropped, since there are sums.
_OF_CHOSEN_HOSTS = 'every_host!~"$host"'
_OF_VERSION = 'version=~"$version"'
_SUMS = "opscope:op_duration_seconds:rate5m"
_COUNT = f"{name('opscope.op.duration')}_count"

# Empty if the version is unknown, or if a host runs several of a service.
BY_VERSION = (
    " * on (cluster, instance, service_name) group_left (version) opscope:host_version:info"
)


def rate(metric: str, where: str = "") -> str:
    """Per second, over the interval between two points of the panel, or longer."""
    return _rate(name(metric), where, "$__rate_interval")


def calls(where: str) -> str:
    """Calls per second: the counter if a host's histograms are native, or else the count of its
    classic ones, which is the same number."""
    return f"{rate('opscope.op.calls', where)} or {_rate(_COUNT, where, '$__rate_interval')}"


def _rate(series: str, where: str, window: str) -> str:
    return f"rate({series}{braced(where)}[{window}])"


def braced(where: str) -> str:
    return f"{{{where}}}" if where else ""


def quantile(p: str, where: str, by: str = "") -> str:
    """Quantile of durations, by labels; `where` selects hosts by the variable `host`, and the
    variable `version` selects versions."""
    native, classic = _durations(where)
    of_native = f" by ({by})" if by else ""
    of_classic = ", ".join(filter(None, ("le", by)))
    return (
        f"histogram_quantile({p}, sum{of_native} ({native}))"
        f" or histogram_quantile({p}, sum by ({of_classic}) ({classic}))"
    )


def quantile_now(p: str, where: str, by: str) -> str:
    """Quantile of durations on each selected host: for instant queries, since it reads all
    series."""
    histogram = name("opscope.op.duration")
    native = _rate(histogram, where, "5m")
    classic = _rate(f"{histogram}_bucket", where, "5m")
    return (
        f"histogram_quantile({p}, sum by ({by}) ({native}))"
        f" or histogram_quantile({p}, sum by (le, {by}) ({classic}))"
    )


def duration_buckets(where: str) -> tuple[str, str]:
    """For a heat map: native histograms, and classic ones if there are no native ones."""
    native, classic = _durations(where)
    return f"sum ({native})", f"sum by (le) ({classic}) and on () absent({native})"


def exemplars(where: str) -> tuple[str, ...]:
    """For the exemplars of native histograms and of classic ones: the recorded sums have none.

    A store finds exemplars by the series that the query names, and not by its offset. At that
    offset there are no data, so it reads none of all hosts' histograms.
    """
    histogram = name("opscope.op.duration")
    return tuple(f"{series}{{{where}}} offset 9y" for series in (histogram, f"{histogram}_bucket"))


def _durations(where: str) -> tuple[str, str]:
    """Native histograms, and the buckets of classic ones, of the chosen versions."""
    histogram = name("opscope.op.duration")
    joined = BY_VERSION + "{" + _OF_VERSION + "}"

    def either(series: str, of_kind: str) -> str:
        chosen = _rate(series, f"{where}, {_OF_CHOSEN_HOSTS}", "$__rate_interval")
        sums = f"{_SUMS}{{{where}, {_OF_VERSION}, {of_kind}}}"
        return f"{sums} or {chosen}{joined} unless on () {sums}"

    return either(histogram, 'le=""'), either(f"{histogram}_bucket", 'le!=""')
