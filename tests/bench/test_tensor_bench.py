"""The value of a tensor bench: the peer it compares with, and when it stops."""

from collections.abc import Callable

import pytest

from opscope.bench.tensor import _Case


def _taking(*ns: float) -> Callable[[], float]:
    """A side that takes so long in its rounds, over and over."""
    turns = [0]

    def side() -> float:
        turns[0] += 1
        return ns[(turns[0] - 1) % len(ns)]

    return side


def test_the_peer_is_the_faster_one_by_its_median_and_not_in_each_round() -> None:
    # Both peers take 10 in most rounds and each 5 in rounds of its own; the second one more often.
    peers = {"numpy": _taking(5, 10, 10, 10, 10), "torch": _taking(9, 9, 5, 5, 9)}
    case = _Case("add_1e5", _taking(9), peers)
    case.measure(5)
    name, ratios = case.ratios()
    assert name == "torch"
    assert ratios == pytest.approx([1.0, 1.0, 5 / 9, 5 / 9, 1.0])


def test_rounds_add_up() -> None:
    case = _Case("add_1e5", _taking(1), {"torch": _taking(2)})
    case.measure(3)
    case.measure(2)
    assert case.ratios() == ("torch", [2.0] * 5)


def _seen(*ratios: float, rounds: int = 40) -> _Case:
    case = _Case("add_1e5", _taking(1), {"torch": _taking(*ratios)})
    case.measure(rounds)
    return case


def test_a_case_is_clear_once_its_value_is_known_or_is_on_one_side_of_its_bound() -> None:
    assert _seen(1.0, 1.01).is_clear()
    assert _seen(1.2, 1.4, 1.6).is_clear()
    assert _seen(0.5, 0.7, 0.9).is_clear()
    assert not _seen(0.8, 1.0, 1.2).is_clear()
    assert not _seen(0.9, 1.3, 1.4, 1.5, rounds=8).is_clear()
