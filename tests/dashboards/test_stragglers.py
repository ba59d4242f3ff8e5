"""The rule on stragglers finds them, with few false positives, in fleets with known truth.

Both of its forms judge the same fleets: making a fleet takes most of the time.
"""

from collections.abc import Iterable

import pytest

from tests.dashboards.fleet import Fleet
from tests.dashboards.statistics import alarms
from tests.examples import few_or

pytestmark = [pytest.mark.slow, pytest.mark.examples]

FLEETS = few_or(25, 100)


def assert_found(fleets: Iterable[Fleet]) -> None:
    """Recall and precision are at least 0.95."""
    true, found, hit = 0, [0, 0], [0, 0]
    for fleet in fleets:
        true += len(fleet.slow)
        for native in (False, True):
            named = alarms(fleet, native=native)
            found[native] += len(named)
            hit[native] += len(named & fleet.slow)
    for native in (False, True):
        recall, precision = hit[native] / true, hit[native] / found[native]
        assert min(recall, precision) >= 0.95, (native, recall, precision)


def assert_left_in_peace(fleets: Iterable[Fleet]) -> None:
    disturbed = [0, 0]
    for fleet in fleets:
        for native in (False, True):
            disturbed[native] += bool(alarms(fleet, native=native))
    assert disturbed == [0, 0]


def test_stragglers_are_found() -> None:
    assert_found(Fleet(seed) for seed in range(FLEETS))


def test_a_fleet_without_stragglers_raises_no_alert() -> None:
    assert_left_in_peace(Fleet(1000 + seed, stragglers=0) for seed in range(FLEETS))


def test_few_samples_raise_no_alarm() -> None:
    assert_left_in_peace(Fleet(2000 + seed, stragglers=0, samples=250) for seed in range(FLEETS))


ROLLOUT = ("1", "2"), (1.0, 1.2)
CANARY = ("1",) * 99 + ("2",), (1.0,) * 99 + (1.2,)


def test_stragglers_are_found_while_a_slower_version_rolls_out() -> None:
    versions, factors = ROLLOUT
    assert_found(Fleet(3000 + seed, versions=versions, factors=factors) for seed in range(FLEETS))


@pytest.mark.parametrize(
    ("versions", "factors"), [ROLLOUT, CANARY], ids=["rollout", "one host has it"]
)
def test_a_slower_version_makes_no_straggler(
    versions: tuple[str, ...], factors: tuple[float, ...]
) -> None:
    assert_left_in_peace(
        Fleet(4000 + seed, stragglers=0, versions=versions, factors=factors)
        for seed in range(FLEETS)
    )


def test_hosts_beside_other_load_are_no_stragglers() -> None:
    """The hosts' operators are the same; a few of their calls wait for a processor."""
    assert_left_in_peace(Fleet(6000 + seed, stragglers=0, busy=3) for seed in range(FLEETS))


def test_stragglers_are_found_among_busy_hosts() -> None:
    assert_found(Fleet(7000 + seed, busy=10) for seed in range(FLEETS))


def test_two_kinds_of_hosts_are_no_stragglers() -> None:
    fleets = [Fleet(5000 + seed, stragglers=0, factors=(1.0, 1.3)) for seed in range(20)]
    assert not any(alarms(fleet, native=True) for fleet in fleets)
