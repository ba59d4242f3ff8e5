"""Sampling of callbacks: their frequency, independent of each other and between threads."""

import threading
from collections.abc import Iterator

import pytest

import opscope
from opscope._native import lib


def open_range() -> None:
    with opscope.record_function("x"):
        pass


@pytest.fixture
def seed() -> Iterator[None]:
    lib.opscope_seed(20250711)
    yield
    lib.opscope_seed(0)


def test_p_1_sees_every_range_and_p_0_none() -> None:
    always: list[str] = []
    never: list[str] = []
    opscope.add_global_callback(lambda fn: always.append(fn.name), sampling_prob=1.0)
    opscope.add_global_callback(lambda fn: never.append(fn.name), sampling_prob=0.0)
    for _ in range(1000):
        open_range()
    assert (len(always), len(never)) == (1000, 0)


@pytest.mark.usefixtures("seed")
@pytest.mark.parametrize("probability", [0.5, 0.1, 0.01])
def test_sampled_calls_are_within_five_standard_errors(probability: float) -> None:
    starts: list[int] = []
    ends: list[int] = []
    opscope.add_global_callback(
        lambda fn: starts.append(1), lambda fn, _: ends.append(1), sampling_prob=probability
    )
    count = 20_000
    for _ in range(count):
        open_range()
    deviation = (count * probability * (1 - probability)) ** 0.5
    assert abs(len(starts) - count * probability) < 5 * deviation
    assert len(ends) == len(starts)


@pytest.mark.usefixtures("seed")
def test_callbacks_are_sampled_independently_of_each_other() -> None:
    fired: list[set[int]] = [set(), set()]
    turn = 0
    opscope.add_global_callback(lambda fn: fired[0].add(turn), sampling_prob=0.5)
    opscope.add_global_callback(lambda fn: fired[1].add(turn), sampling_prob=0.5)
    count = 4_000
    for turn in range(count):  # noqa: B007 - the callbacks read it
        open_range()
    both = len(fired[0] & fired[1])
    assert abs(both - count / 4) < 5 * (count * 3 / 16) ** 0.5


def sampled_turns() -> tuple[int, ...]:
    """Which of 500 ranges a callback of p=0.1 fires for, on a new thread."""
    fired: list[int] = []
    turn = 0

    def work() -> None:
        nonlocal turn
        for turn in range(500):  # noqa: B007 - the callback reads it
            open_range()

    handle = opscope.add_global_callback(lambda fn: fired.append(turn), sampling_prob=0.1)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    opscope.remove_callback(handle)
    return tuple(fired)


def test_no_two_threads_draw_the_same_sequence() -> None:
    drawn = [sampled_turns() for _ in range(8)]
    assert len(set(drawn)) == len(drawn)


@pytest.mark.usefixtures("seed")
def test_no_two_threads_draw_the_same_sequence_from_a_fixed_seed() -> None:
    drawn = [sampled_turns() for _ in range(8)]
    assert len(set(drawn)) == len(drawn)
