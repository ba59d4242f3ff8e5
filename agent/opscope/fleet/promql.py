"""The PromQL expressions: names from the table of metrics, histograms of either kind.

"typical" and "slow" have the definitions of dashboards/rules/fleet.yml, which computes the same in
advance; a test compares the two.
"""

from __future__ import annotations

import re

from opscope.fleet import globs
from opscope.metric_definition import Kind
from opscope.metrics import METRICS

LEAST_SAMPLES = 200
"""Minimum recorded runs of an operator on a host for a statement about it."""

MARGIN, LEAST_BOUNDS = 0.1, 2
"""Requirements on a classic histogram to locate its median between two bounds."""

_WILDCARDS = {"*": "(?s:.*)", "?": "(?s:.)"}
_BY_NAME = {metric.name: metric for metric in METRICS}
_CELL = "instance, service_name, op, phase, model_id"
_OPERATOR = "service_name, version, op, phase, model_id"


def name(metric: str) -> str:
    """Prometheus's name: `opscope.op.calls` is `opscope_op_calls_total`. KeyError if unknown."""
    found = _BY_NAME[metric]
    return found.prometheus_name + ("_total" if found.kind is Kind.COUNTER else "")


def quoted(value: str) -> str:
    """The value as a PromQL string."""
    escaped = value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'"{escaped}"'


def where(services: str | None = None, **labels: str | None) -> str:
    """A selector of these labels; None: any value. In a value, * is any text, ? one character.

    `services`: a glob of service names (globs.py).
    """
    found = [_matcher(key, value) for key, value in labels.items() if value is not None]
    if services is not None:
        is_name = globs.is_name(services)
        value = quoted(services if is_name else globs.regex(services))
        found.insert(0, f"service_name{'=' if is_name else '=~'}{value}")
    return ", ".join(found)


def _matcher(key: str, value: str) -> str:
    if not set(value) & {"*", "?"}:
        return f"{key}={quoted(value)}"
    # RE2's and Python's syntax agree on what re.escape makes. Prometheus anchors the expression.
    parts = (_WILDCARDS.get(part) or re.escape(part) for part in re.split(r"([*?])", value))
    return f"{key}=~{quoted(''.join(parts))}"


def rates(metric: str, by: str, selector: str, window: str) -> str:
    return f"sum by ({by}) (rate({name(metric)}{{{selector}}}[{window}]))"


def call_rates(by: str, selector: str, window: str) -> str:
    """Calls per second: the counter if a host's histograms are native, or else the count of its
    classic ones, which is the same number."""
    calls, count = name("opscope.op.calls"), f"{name('opscope.op.duration')}_count"
    each = f"rate({calls}{{{selector}}}[{window}]) or rate({count}{{{selector}}}[{window}])"
    return f"sum by ({by}) ({each})"


def increases(metric: str, by: str, selector: str, window: str) -> str:
    return f"sum by ({by}) (increase({name(metric)}{{{selector}}}[{window}]))"


def error_of_calls(by: str, selector: str, window: str) -> str:
    """Standard error of the calls per second; no sample for exact counts."""
    variance = "opscope.op.calls.variance"
    rate = rates(variance, by, selector, window)
    # An increase over a rate is the length of the window.
    return f"(sqrt({rate} * {rate} / {increases(variance, by, selector, window)}) > 0)"


def quantile(p: float, by: str, selector: str, window: str) -> str:
    """Quantile of durations in seconds: of native histograms, or else of classic ones."""
    histogram = name("opscope.op.duration")
    return (
        f"histogram_quantile({p}, sum by ({by}) (rate({histogram}{{{selector}}}[{window}]))) or "
        f"histogram_quantile({p}, sum by (le, {by}) "
        f"(rate({histogram}_bucket{{{selector}}}[{window}])))"
    )


def _summed(metric: str, selector: str, window: str, more: str = "") -> str:
    """By host and operator, the rate of the compared series."""
    compared = ", ".join(filter(None, (selector, 'op!="other", phase!="comm"')))
    return f"sum by ({more}{_CELL}) (rate({metric}{{{compared}}}[{window}]))"


def with_samples(selector: str, window: str) -> str:
    """By host and operator, those with enough recorded runs."""
    samples = _summed(name("opscope.op.samples"), selector, window)
    return f"({samples.replace('(rate(', '(increase(')} >= {LEAST_SAMPLES})"


def of_cells(p: float, selector: str, window: str, *, classic: bool) -> str:
    """By host and operator, a quantile of a call's seconds, from one kind of histogram; from
    classic ones only if there are no native ones."""
    histogram = name("opscope.op.duration")
    native = f"histogram_quantile({p}, {_summed(histogram, selector, window)})"
    if not classic:
        return native
    buckets = _summed(f"{histogram}_bucket", selector, window, "le, ")
    return f"(histogram_quantile({p}, {buckets}) unless on ({_CELL}) {native})"


def _spread(selector: str, window: str) -> str:
    """By host and operator, the classic histograms that locate their median: at least LEAST_BOUNDS
    bounds have more than MARGIN of the calls on both sides."""
    histogram = name("opscope.op.duration")
    share = (
        f"{_summed(f'{histogram}_bucket', selector, window, 'le, ')} / on ({_CELL}) group_left ()"
        f" {_summed(f'{histogram}_count', selector, window)}"
    )
    return f"count by ({_CELL}) ({share} > {MARGIN} < {1 - MARGIN}) >= {LEAST_BOUNDS}"


def typical(selector: str, window: str) -> str:
    """By host and operator, the median seconds of a call, if known."""
    return (
        f"(({of_cells(0.5, selector, window, classic=False)}"
        f" or {of_cells(0.5, selector, window, classic=True)} and {_spread(selector, window)})"
        f" and {with_samples(selector, window)})"
    )


def without_median(selector: str, window: str) -> str:
    """By host and operator, those with enough runs whose classic histograms do not locate their
    median."""
    return (
        f"({of_cells(0.5, selector, window, classic=True)} and {with_samples(selector, window)}"
        f" unless ({_spread(selector, window)}))"
    )


def slowness(selector: str, window: str) -> str:
    """By host, service, version and model: the median, over operators, of the ratio to the median
    host.

    `selector`: on labels that opscope.service.info has too.
    """
    version = compared_version(selector, window)
    joined = "on (instance, service_name) group_left (version)"
    each = f"({typical(selector, window)} * {joined} {version})"
    fleet = f"(quantile by ({_OPERATOR}) (0.5, {each}) > 0)"
    ratio = f"{each} / on ({_OPERATOR}) group_left () {fleet}"
    return f"quantile by (instance, service_name, version, model_id) (0.5, {ratio})"


def compared_version(selector: str, window: str) -> str:
    """By host and service, the version if it was the only one all the time, or empty if unknown.
    Leaves out a host with two versions in that time: its times are from both."""
    info = f"last_over_time({name('opscope.service.info')}{{{selector}}}[{window}])"
    known = f"group by (instance, service_name, version) ({info})"
    every = f"group by (instance, service_name) ({name('opscope.op.samples')}{{{selector}}})"
    return (
        f"({known} and on (instance, service_name) count by (instance, service_name) ({known}) == 1"
        f" or on (instance, service_name) {every} unless on (instance, service_name) {info})"
    )


def hosts_of(service: str, version: str | None = None) -> str:
    """Hosts on which all live processes of the service have that version."""
    info = name("opscope.service.info")
    alone = f"count by (instance, service_name) ({info}{{{where(service_name=service)}}}) == 1"
    chosen = f"{info}{{{where(service_name=service, version=version)}}}"
    of_version = f"{chosen} and on (instance, service_name) {alone}"
    return f"max by (instance, service_name, version) ({of_version})"


def of_version(service: str, version: str, window: str, p: float, *, classic: bool) -> str:
    """By host and operator, a quantile of a call's seconds on the hosts of that version."""
    selector = where(service_name=service)
    return (
        f"({of_cells(p, selector, window, classic=classic)} and {with_samples(selector, window)}"
        f" and on (instance, service_name) {hosts_of(service, version)})"
    )


def bounds(service: str) -> str:
    """The bounds of the service's classic histograms, by `le`."""
    return f"group by (le) ({name('opscope.op.duration')}_bucket{{{where(service_name=service)}}})"
