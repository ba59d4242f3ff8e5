"""A changing fleet as input of `promtool test rules`: three hours of hosts that appear, disappear,
return and restart, while a second version of their service rolls out host by host.

Counters begin at zero when an agent restarts, and a series ends as Prometheus ends it when its
target is gone. The caller decides which host and which version is slow, if any.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from math import log2
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from tests.dashboards.documents import RULES

MINUTES = 150
SERVICE, MODEL = "ranker", "r50"
OPERATORS = (("mm", "forward"), ("add", "forward"), ("mm", "backward"), ("step", "optimizer"))
_CALLS, _SAMPLES = 6000, 120
"""Mean per minute."""
_REFUSED_A_MINUTE = 0.005


@dataclass(frozen=True)
class Life:
    """In minutes."""

    begins: int = 0
    ends: int = MINUTES
    away: tuple[int, int] = (0, 0)
    restarts: tuple[int, ...] = ()
    """Where the agent has lost what it had counted."""
    upgrade: int = MINUTES
    rollback: int = MINUTES
    refused: int = 0
    """Processes that its agent has counted as refused before Prometheus knows of it."""

    def is_there(self, minute: int) -> bool:
        return self.begins <= minute < self.ends and not self.away[0] <= minute < self.away[1]

    def versions(self, minute: int) -> set[str]:
        """The versions of its live processes: for two minutes both."""
        found = {"2" if self.upgrade <= minute < self.rollback else "1"}
        return found | ({"1"} if self.upgrade <= minute < self.upgrade + 2 else set())


def lives(canary: int | None = None) -> list[Life]:
    """Sixteen hosts; half of them have another change besides the new version. With `canary`, this
    host alone gets the new version, and nothing else changes."""
    if canary is not None:
        return [Life(upgrade=60 if number == canary else MINUTES) for number in range(16)]
    rolled_out = [Life(upgrade=70 + 3 * number) for number in range(8)]
    return [
        *rolled_out,
        Life(restarts=(50,), upgrade=95),
        Life(restarts=(31, 52, 101, 102), upgrade=101),
        Life(away=(60, 75), restarts=(75,), upgrade=100),
        Life(away=(20, 120), upgrade=120),
        Life(ends=40),
        Life(begins=45, upgrade=103, refused=30),
        Life(begins=90, upgrade=90),
        Life(upgrade=85, rollback=130),
    ]


def document(
    expr: str,
    expected: list[str],
    *,
    slow_hosts: Collection[int] = (),
    factor: float = 1.0,
    canary: int | None = None,
) -> dict[str, object]:
    """Input for promtool: at the end, the answer to `expr` is 1 for each of the labels.

    `slow_hosts` take 30 % longer than the others, version 2 `factor` times as long as version 1.
    """
    series = []
    for number, life in enumerate(lives(canary)):
        slowness = 1.3 if number in slow_hosts else 1.0
        series += [
            {"series": name, "values": values}
            for name, values in _host(number, life, slowness, factor)
        ]
    return {
        "rule_files": [str(path) for path in sorted(RULES.glob("*.yml"))],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": series,
                "promql_expr_test": [
                    {
                        "expr": expr,
                        "eval_time": f"{MINUTES - 1}m",
                        "exp_samples": [{"labels": labels, "value": 1} for labels in expected],
                    }
                ],
            }
        ],
    }


def _host(number: int, life: Life, slowness: float, factor: float) -> Iterator[tuple[str, str]]:
    random = np.random.default_rng(number)
    here = f'instance="host{number:02}"'
    of_service = f'{here},service_name="{SERVICE}"'
    for version in ("1", "2"):
        runs = [version in life.versions(minute) for minute in range(MINUTES)]
        yield f'opscope_service_info{{{of_service},version="{version}"}}', _gauge(life, runs)
    for name in ("opscope_processes", "opscope_build_info"):
        yield f"{name}{{{here}}}", _gauge(life, [True] * MINUTES)
    refused = random.poisson(_REFUSED_A_MINUTE, MINUTES)
    refused[life.begins] += life.refused
    labels = f'{here},bridge="torch",result="refused"'
    yield f"opscope_attachment_results_total{{{labels}}}", _counter(life, refused)
    yield f"opscope_recorder_dropped_total{{{here}}}", _counter(life, np.zeros(MINUTES))
    fast = slowness * np.exp(random.normal(0, 0.015))
    for place, (op, phase) in enumerate(OPERATORS):
        labels = f'{of_service},op="{op}",phase="{phase}",model_id="{MODEL}",framework="torch"'
        call_s = 1e-3 * (1 + place) * fast * np.exp(random.normal(0, 0.02))
        is_new = np.array(["1" not in life.versions(minute) for minute in range(MINUTES)])
        calls = random.poisson(_CALLS, MINUTES)
        seconds = calls * call_s * np.where(is_new, factor, 1) * random.normal(1, 0.01, MINUTES)
        for name, added in (
            ("opscope_op_duration_seconds_count", calls),
            ("opscope_op_duration_seconds_sum", seconds),
            ("opscope_op_self_time_seconds_total", seconds),
            ("opscope_op_samples_total", random.poisson(_SAMPLES, MINUTES)),
        ):
            yield f"{name}{{{labels}}}", _counter(life, added)
        for bound, share in _shares(seconds / calls):
            name = f'opscope_op_duration_seconds_bucket{{{labels},le="{bound}"}}'
            yield name, _counter(life, np.rint(calls * share))


def _shares(median_s: NDArray[np.float64]) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """The bounds of a classic histogram and, for each minute, the share below each bound:
    log-normal durations with this median, whose standard deviation is one octave."""
    for exponent in range(-14, -3):
        below = [NormalDist().cdf(exponent - log2(one)) for one in median_s.tolist()]
        yield f"{2.0**exponent}", np.array(below)
    yield "+Inf", np.ones(len(median_s))


def _gauge(life: Life, is_one: list[bool]) -> str:
    """1, or no sample."""
    return _text(
        [1.0 if one and life.is_there(minute) else None for minute, one in enumerate(is_one)]
    )


def _counter(life: Life, added: NDArray[np.generic]) -> str:
    """A counter that grows by this much each minute; while its host is away it grows unseen."""
    total = 0.0
    shown: list[float | None] = []
    for minute, more in enumerate(added.tolist()):
        total = more if minute in life.restarts or minute == life.begins else total + more
        shown.append(total if life.is_there(minute) else None)
    return _text(shown)


def _text(values: list[float | None]) -> str:
    """One value per minute, in promtool's notation."""
    words, was_there = [], False
    for value in values:
        words.append(f"{value:.9g}" if value is not None else "stale" if was_there else "_")
        was_there = value is not None
    return " ".join(words)
