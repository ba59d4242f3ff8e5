"""The rule on stragglers finds them, and next to nothing else, over fleets whose truth is known."""

import pytest

from tests.dashboards.fleet import Fleet
from tests.dashboards.statistics import alarms

FLEETS = 200


def outcome(fleets: list[Fleet], *, native: bool) -> tuple[float, float]:
    """Recall and precision."""
    true = found = hit = 0
    for fleet in fleets:
        named = alarms(fleet, native=native)
        true, found, hit = true + len(fleet.slow), found + len(named), hit + len(named & fleet.slow)
    return hit / true, hit / found


@pytest.mark.parametrize("native", [True, False], ids=["native", "classic"])
def test_stragglers_are_found(native: bool) -> None:
    recall, precision = outcome([Fleet(seed) for seed in range(FLEETS)], native=native)
    assert recall >= 0.95, (recall, precision)
    assert precision >= 0.95, (recall, precision)


@pytest.mark.parametrize("native", [True, False], ids=["native", "classic"])
def test_a_fleet_without_stragglers_is_left_in_peace(native: bool) -> None:
    fleets = [Fleet(1000 + seed, stragglers=0) for seed in range(FLEETS)]
    assert sum(bool(alarms(fleet, native=native)) for fleet in fleets) <= 1


@pytest.mark.parametrize("native", [True, False], ids=["native", "classic"])
def test_few_samples_raise_no_alarm(native: bool) -> None:
    fleets = [Fleet(2000 + seed, stragglers=0, samples=250) for seed in range(FLEETS)]
    assert sum(bool(alarms(fleet, native=native)) for fleet in fleets) <= 1


ROLLOUT = ("1", "2"), (1.0, 1.2)
CANARY = ("1",) * 99 + ("2",), (1.0,) * 99 + (1.2,)


@pytest.mark.parametrize("native", [True, False], ids=["native", "classic"])
def test_stragglers_are_found_while_a_slower_version_rolls_out(native: bool) -> None:
    versions, factors = ROLLOUT
    fleets = [Fleet(3000 + seed, versions=versions, factors=factors) for seed in range(FLEETS)]
    recall, precision = outcome(fleets, native=native)
    assert recall >= 0.95, (recall, precision)
    assert precision >= 0.95, (recall, precision)


@pytest.mark.parametrize("native", [True, False], ids=["native", "classic"])
@pytest.mark.parametrize(
    ("versions", "factors"), [ROLLOUT, CANARY], ids=["rollout", "one host has it"]
)
def test_a_slower_version_makes_no_straggler(
    versions: tuple[str, ...], factors: tuple[float, ...], native: bool
) -> None:
    fleets = [
        Fleet(4000 + seed, stragglers=0, versions=versions, factors=factors)
        for seed in range(FLEETS)
    ]
    assert sum(bool(alarms(fleet, native=native)) for fleet in fleets) <= 1


def test_two_kinds_of_hosts_are_no_stragglers() -> None:
    fleets = [Fleet(5000 + seed, stragglers=0, factors=(1.0, 1.3)) for seed in range(20)]
    assert not any(alarms(fleet, native=True) for fleet in fleets)
