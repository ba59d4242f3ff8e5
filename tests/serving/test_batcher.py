"""Triton's rule: which requests leave the queue when, for random arrivals too."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.serving.batcher import Batcher, Queued, QueueFullError, Rule
from tests.examples import examples


def queued(
    name: str = "", rows: int = 1, shape: int = 0, at: int = 0, deadline: int | None = None
) -> Queued[str]:
    return Queued(name, rows, shape, 8 * rows, at, deadline)


def filled(rule: Rule, *requests: Queued[str]) -> Batcher[str]:
    batcher: Batcher[str] = Batcher(rule)
    for one in requests:
        batcher.offer(one)
    return batcher


def names(batch: list[Queued[str]]) -> str:
    return "".join(one.payload for one in batch)


def test_without_a_delay_what_waits_is_sent_at_once_up_to_the_greatest_size() -> None:
    batcher = filled(Rule(max_batch_size=4), *(queued(name) for name in "abcdef"))
    assert names(batcher.take(0).batch) == "abcd"
    assert names(batcher.take(0).batch) == "ef"
    assert batcher.take(0).batch == []


def test_a_model_without_batches_gets_one_request_at_a_time() -> None:
    batcher = filled(Rule(), queued("a"), queued("b"))
    assert [names(batcher.take(0).batch) for _ in "ab"] == ["a", "b"]


def test_the_largest_preferred_size_is_sent_first() -> None:
    rule = Rule(max_batch_size=8, preferred_batch_sizes=(2, 4))
    batcher = filled(rule, *(queued(name) for name in "abcdefg"))
    assert [names(batcher.take(0).batch) for _ in range(3)] == ["abcd", "ef", "g"]


def test_requests_wait_for_a_full_batch_no_longer_than_the_delay() -> None:
    batcher = filled(Rule(max_batch_size=3, max_queue_delay_ns=100), queued("a", at=50))
    taken = batcher.take(60)
    assert (taken.batch, taken.wait_until_ns) == ([], 150)
    batcher.offer(queued("b", at=100))
    assert batcher.take(149).batch == []
    assert names(batcher.take(150).batch) == "ab"


def test_a_full_or_preferred_batch_does_not_wait() -> None:
    full = filled(Rule(max_batch_size=2, max_queue_delay_ns=100), queued("a"), queued("b"))
    assert names(full.take(0).batch) == "ab"
    rule = Rule(max_batch_size=9, preferred_batch_sizes=(2,), max_queue_delay_ns=100)
    preferred = filled(rule, queued("a"), queued("b"), queued("c"))
    assert names(preferred.take(0).batch) == "ab"
    assert preferred.take(99).batch == []
    assert names(preferred.take(100).batch) == "c"


def test_another_shape_ends_the_batch_before_it() -> None:
    rule = Rule(max_batch_size=9, max_queue_delay_ns=100)
    batcher = filled(rule, queued("a"), queued("b", shape=1), queued("c"))
    assert names(batcher.take(0).batch) == "a"
    assert names(batcher.take(0).batch) == "b"
    assert batcher.take(0).batch == []


def test_rows_count_and_not_requests() -> None:
    batcher = filled(Rule(max_batch_size=4), queued("a", 3), queued("b", 2), queued("c", 2))
    assert [names(batcher.take(0).batch) for _ in range(2)] == ["a", "bc"]


def test_a_cancelled_request_leaves_the_queue_once() -> None:
    requests = [queued(name) for name in "abc"]
    batcher = filled(Rule(max_batch_size=4), *requests)
    assert batcher.remove(requests[1])
    assert not batcher.remove(requests[1])
    assert (len(batcher), batcher.bytes) == (2, 16)
    assert names(batcher.take(0).batch) == "ac"


def test_a_request_past_its_deadline_is_not_run() -> None:
    rule = Rule(max_batch_size=4, default_timeout_ns=50)
    batcher = filled(rule, queued("a", deadline=10), queued("b"), queued("c", deadline=90))
    taken = batcher.take(10, is_free=False)
    assert (names(taken.expired), taken.wait_until_ns) == ("a", 50)
    taken = batcher.take(50)
    assert (names(taken.expired), names(taken.batch)) == ("b", "c")


def test_a_full_queue_refuses_at_once() -> None:
    batcher = filled(Rule(max_queue_size=2), queued(), queued())
    with pytest.raises(QueueFullError, match="2 requests wait"):
        batcher.offer(queued())
    batcher = filled(Rule(max_queue_bytes=10), queued(rows=9))  # one alone always fits
    with pytest.raises(QueueFullError, match="72 bytes wait"):
        batcher.offer(queued())


events = st.lists(
    st.tuples(
        st.sampled_from(["offer", "take", "busy", "cancel"]),
        st.integers(1, 4),
        st.integers(0, 1),
        st.integers(0, 30),
    ),
    max_size=60,
)


@examples(60)
@given(
    events,
    st.integers(0, 6),
    st.lists(st.integers(1, 6), max_size=2),
    st.sampled_from([0, 25]),
)
def test_what_holds_for_every_history(
    history: list[tuple[str, int, int, int]], greatest: int, preferred: list[int], delay: int
) -> None:
    rule = Rule(greatest, tuple(one for one in preferred if one <= greatest), delay)
    batcher: Batcher[str] = Batcher(rule)
    now = 0
    waiting: list[Queued[str]] = []
    left: list[Queued[str]] = []
    for kind, number, shape, step in history:
        now += step
        if kind == "offer":
            deadline = now + 40 if step % 3 == 0 else None
            one = queued(rows=min(number, max(greatest, 1)), shape=shape, at=now, deadline=deadline)
            batcher.offer(one)
            waiting.append(one)
        elif kind == "cancel":
            if waiting:
                assert batcher.remove(waiting.pop(number % len(waiting)))
        else:
            taken = batcher.take(now, is_free=kind == "take")
            expired = [one for one in waiting if one.deadline_ns and one.deadline_ns <= now]
            assert sorted(map(id, taken.expired)) == sorted(map(id, expired))
            waiting = [one for one in waiting if one not in expired]
            batch = taken.batch
            assert batch == waiting[: len(batch)]  # the oldest, in order
            assert len({one.shape for one in batch}) <= 1
            rows = sum(one.rows for one in batch)
            assert len(batch) == 1 if batch and not greatest else rows <= max(greatest, 4)
            waiting = waiting[len(batch) :]
            left += batch
            if kind == "busy":
                assert not batch
            elif not batch and waiting:
                # It waits only as long as the rule allows, and says until when.
                assert now < waiting[0].arrived_ns + delay
                assert taken.wait_until_ns is not None
                assert now < taken.wait_until_ns <= waiting[0].arrived_ns + delay
        assert len(batcher) == len(waiting)
        assert batcher.bytes == sum(one.bytes for one in waiting)
    assert len({id(one) for one in left}) == len(left)
