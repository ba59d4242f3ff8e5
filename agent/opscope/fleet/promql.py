"""The expressions: names from the table of metrics, and histograms of either kind.

What "typical" and "slow" mean is as in dashboards/rules/fleet.yml, which computes the same ahead of
time; a test compares the two.
"""

from __future__ import annotations

from opscope.metrics import METRICS, Kind

LEAST_SAMPLES = 200
"""Recorded runs of an operator on a host, below which nothing is said of it."""

_BY_NAME = {metric.name: metric for metric in METRICS}
_CELL = "instance, service, op, phase, model_id"
_OPERATOR = "service, version, op, phase, model_id"


def name(metric: str) -> str:
    """As Prometheus has it: `opscope.op.calls` is `opscope_op_calls_total`. KeyError: none such."""
    found = _BY_NAME[metric]
    return found.prometheus_name + ("_total" if found.kind is Kind.COUNTER else "")


def quoted(value: str) -> str:
    """As PromQL has text."""
    escaped = value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    return f'"{escaped}"'


def where(**labels: str | None) -> str:
    """A selector of these labels; None: any value."""
    chosen = [f"{key}={quoted(value)}" for key, value in labels.items() if value is not None]
    return ", ".join(chosen)


def rates(metric: str, by: str, selector: str, window: str) -> str:
    return f"sum by ({by}) (rate({name(metric)}{{{selector}}}[{window}]))"


def quantile(p: float, by: str, selector: str, window: str) -> str:
    """Of durations in seconds: of native histograms, or else of classic ones."""
    histogram = name("opscope.op.duration")
    return (
        f"histogram_quantile({p}, sum by ({by}) (rate({histogram}{{{selector}}}[{window}]))) or "
        f"histogram_quantile({p}, sum by (le, {by}) "
        f"(rate({histogram}_bucket{{{selector}}}[{window}])))"
    )


def typical(selector: str, window: str) -> str:
    """By host and operator, how many seconds a call takes."""
    compared = ", ".join(filter(None, (selector, 'op!="other", phase!="comm"')))
    histogram, samples = name("opscope.op.duration"), name("opscope.op.samples")

    def summed(metric: str) -> str:
        return f"sum by ({_CELL}) (rate({metric}{{{compared}}}[{window}]))"

    return (
        f"((histogram_quantile(0.5, {summed(histogram)})"
        f" or {summed(f'{histogram}_sum')} / {summed(f'{histogram}_count')})"
        f" and sum by ({_CELL}) (increase({samples}{{{compared}}}[{window}])) >= {LEAST_SAMPLES})"
    )


def slowness(selector: str, window: str) -> str:
    """By host, service, version and model: of its operators the median ratio to the median host.

    `selector`: of labels that opscope.service.info has too.
    """
    version = compared_version(selector, window)
    each = f"({typical(selector, window)} * on (instance, service) group_left (version) {version})"
    fleet = f"(quantile by ({_OPERATOR}) (0.5, {each}) > 0)"
    ratio = f"{each} / on ({_OPERATOR}) group_left () {fleet}"
    return f"quantile by (instance, service, version, model_id) (0.5, {ratio})"


def compared_version(selector: str, window: str) -> str:
    """By host and service, the version that is there is all the time, or none where none is known.
    A host that had two in that time is left out: its times are of both."""
    info = f"last_over_time({name('opscope.service.info')}{{{selector}}}[{window}])"
    known = f"group by (instance, service, version) ({info})"
    every = f"group by (instance, service) ({name('opscope.op.calls')}{{{selector}}})"
    return (
        f"({known} and on (instance, service) count by (instance, service) ({known}) == 1"
        f" or on (instance, service) {every} unless on (instance, service) {info})"
    )


def hosts_of(service: str, version: str | None = None) -> str:
    """Hosts where live processes of the service are of that one version."""
    info = name("opscope.service.info")
    alone = f"count by (instance, service) ({info}{{{where(service=service)}}}) == 1"
    chosen = f"{info}{{{where(service=service, version=version)}}}"
    return f"max by (instance, service, version) ({chosen} and on (instance, service) {alone})"


def of_version(service: str, version: str, window: str) -> str:
    """By host and operator, how many seconds a call takes on the hosts of that version."""
    hosts = hosts_of(service, version)
    return f"({typical(where(service=service), window)} and on (instance, service) {hosts})"
