"""A fleet in which faults are planted, as input of `promtool test rules`: what each fault shows on
which panel, and which alert it raises.

Two services on ten and five hosts, two hours; half of the first service's hosts get its second
version on the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from tests.dashboards.documents import RULES, filled, query_of

MINUTES, RELEASE, FAULT = 112, 30, 35
SERVICE, SMALL = "ranker", "loader"
HOSTS, SMALL_HOSTS = 10, 5
OPERATORS = (
    ("aten::mm", "forward", 1e-3),
    ("aten::bmm", "forward", 2e-3),
    ("Optimizer.step#AdamW.step", "optimizer", 3e-3),
    ("aten::stack", "data", 5e-4),
)
_CALLS, _SAMPLES = 6000, 300
STRAGGLER, CRASHED, FULL = "ranker-03", "loader-02", "ranker-07"
REGRESSED, REGRESSION = "aten::bmm", 1.08


@dataclass(frozen=True)
class Fault:
    alert: str
    """`alertname` and the labels that tell which one."""
    panels: tuple[tuple[str, str, str], ...]
    """(board, panel, question about the answer to the panel's first query, with {}); the answer to
    each question is `shown`, with value 1."""
    shown: tuple[str, ...]


FAULTS = {
    "straggler": Fault(
        f'alertname="OpscopeStraggler", instance="{STRAGGLER}", service_name="{SERVICE}"',
        (
            ("opscope-hosts.json", "Hosts over time", "group by (instance) (({}) > 1.2)"),
            ("opscope-hosts.json", "Slowest hosts", "group by (instance) (topk(1, {}))"),
        ),
        (f'{{instance="{STRAGGLER}"}}',) * 2,
    ),
    "regression": Fault(
        f'alertname="OpscopeOperatorRegressed", op="{REGRESSED}", service_name="{SERVICE}"',
        (
            (
                "opscope-fleet.json",
                "Slower than in the last version",
                "group by (op, version) ({})",
            ),
            ("opscope-model.json", "Surely slower than in the last version", "group by (op) ({})"),
        ),
        (f'{{op="{REGRESSED}", version="2"}}', f'{{op="{REGRESSED}"}}'),
    ),
    "input-bound": Fault(
        f'alertname="OpscopeInputBound", service_name="{SMALL}"',
        (
            (
                "opscope-fleet.json",
                "Share of time that waits for input",
                "group by (service_name) (({}) > 0.3)",
            ),
        ),
        (f'{{service_name="{SMALL}"}}',),
    ),
    "crashed": Fault(
        f'alertname="OpscopeAgentDown", instance="{CRASHED}"',
        (
            ("opscope-hosts.json", "Agents that do not answer", "({}) == 1"),
            (
                "opscope-fleet.json",
                "Firing alerts",
                "group by (instance, alertname) (({}) and on (alertname)"
                ' label_replace(vector(1), "alertname", "OpscopeAgentDown", "", ""))',
            ),
        ),
        ("{}", f'{{instance="{CRASHED}", alertname="OpscopeAgentDown"}}'),
    ),
    "full": Fault(
        f'alertname="OpscopeSeriesFolded", instance="{FULL}"',
        (("opscope-itself.json", "Series folded", "({}) / 100"),),
        ("{}",),
    ),
}


def document(*faults: str) -> dict[str, object]:
    """Input for promtool: with these faults, exactly their alerts fire, and their panels show
    them."""
    firing = 'group by (alertname, instance, service_name, op) (ALERTS{alertstate="firing"})'
    alerts = [f"{{{FAULTS[fault].alert}}}" for fault in faults]
    asked = [(firing, alerts)]
    for fault in faults:
        for (board, panel, question), shown in zip(
            FAULTS[fault].panels, FAULTS[fault].shown, strict=True
        ):
            asked.append(
                (question.format(filled(query_of(board, panel), REGRESSED, sure=True)), [shown])
            )
    return {
        "interval": "1m",
        "name": ", ".join(faults) or "none",
        "input_series": [
            {"series": name, "values": values} for name, values in _series(set(faults))
        ],
        "promql_expr_test": [
            {
                "expr": promql,
                "eval_time": f"{MINUTES - 1}m",
                "exp_samples": [{"labels": labels, "value": 1} for labels in expected],
            }
            for promql, expected in asked
        ],
    }


def whole(*tests: dict[str, object]) -> dict[str, object]:
    return {
        "rule_files": [str(path) for path in sorted(RULES.glob("*.yml"))],
        "evaluation_interval": "1m",
        "tests": [*tests],
    }


def _series(faults: set[str]) -> Iterator[tuple[str, str]]:
    for number in range(HOSTS):
        host = f"{SERVICE}-{number:02}"
        upgrade = RELEASE if number % 2 == 0 else MINUTES
        yield from _host(number, SERVICE, host, upgrade, faults)
    for number in range(SMALL_HOSTS):
        yield from _host(100 + number, SMALL, f"{SMALL}-{number:02}", MINUTES, faults)


def _host(
    number: int, service: str, host: str, upgrade: int, faults: set[str]
) -> Iterator[tuple[str, str]]:
    random = np.random.default_rng(number)
    ends = FAULT if "crashed" in faults and host == CRASHED else MINUTES
    here = f'instance="{host}"'
    of_service = f'{here},service_name="{service}"'

    def gauge(value: float, begins: int = 0, until: int = MINUTES) -> str:
        return _text([value if begins <= m < min(until, ends) else None for m in range(MINUTES)])

    yield f'up{{job="opscope",{here}}}', _text([float(m < ends) for m in range(MINUTES)])
    for name in ("opscope_processes", "opscope_build_info"):
        yield f"{name}{{{here}}}", gauge(1.0)
    for version, begins, until in (("1", 0, upgrade), ("2", upgrade, MINUTES)):
        labels = f'{of_service},version="{version}"'
        yield f"opscope_service_info{{{labels}}}", gauge(1.0, begins, until)
    if "full" in faults and host == FULL:
        yield f"opscope_series_folded{{{here}}}", gauge(100.0, FAULT)
    yield f"opscope_recorder_dropped_total{{{here}}}", gauge(0.0)
    yield f"opscope_recorder_overhead_ratio{{{of_service}}}", gauge(0.003)
    yield f"opscope_recorder_overhead_budget{{{of_service}}}", gauge(0.005)
    fast = np.exp(random.normal(0, 0.015))
    for op, phase, call_s in OPERATORS:
        mine = call_s * fast * np.exp(random.normal(0, 0.01))
        calls = np.full(MINUTES, _CALLS) * np.exp(random.normal(0, 0.02, MINUTES))
        seconds = np.full(MINUTES, mine)
        if "straggler" in faults and host == STRAGGLER:
            seconds[FAULT:] *= 1.3
        if "regression" in faults and op == REGRESSED:
            seconds[upgrade:] *= REGRESSION
        if "input-bound" in faults and service == SMALL and phase == "data":
            calls[FAULT:] *= 15
        labels = f'{of_service},op="{op}",phase="{phase}",model_id="r50",framework="torch"'
        samples = calls * _SAMPLES / _CALLS
        for name, added in (
            ("opscope_op_duration_seconds_count", calls),
            ("opscope_op_self_time_seconds_total", calls * seconds),
            ("opscope_op_samples_total", samples),
        ):
            yield f"{name}{{{labels}}}", _counter(added, ends)
        middle = round(np.log2(call_s))
        for exponent in range(middle - 2, middle + 4):
            # Log-normal durations; the standard deviation is one octave.
            known = {x: NormalDist().cdf(exponent - np.log2(x)) for x in set(seconds.tolist())}
            below = [known[x] for x in seconds.tolist()]
            bound = f'{labels},le="{2.0**exponent}"'
            yield f"opscope_op_duration_seconds_bucket{{{bound}}}", _counter(calls * below, ends)
        bound = f'{labels},le="+Inf"'
        yield f"opscope_op_duration_seconds_bucket{{{bound}}}", _counter(calls, ends)


def _counter(added: NDArray[np.float64], ends: int) -> str:
    return _text([*np.cumsum(added)[:ends].tolist(), *[None] * (MINUTES - ends)])


def _text(values: list[float | None]) -> str:
    """One value per minute, in promtool's notation."""
    words, was_there = [], False
    for value in values:
        words.append(f"{value:.9g}" if value is not None else "stale" if was_there else "_")
        was_there = value is not None
    return " ".join(words)
