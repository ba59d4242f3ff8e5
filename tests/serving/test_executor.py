"""One model's requests: batches, cancellations, deadlines, overload, and requests that fail."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from opscope import tensor as ot
from opscope.serving.batcher import Rule
from opscope.serving.executor import Executor
from opscope.serving.faults import Reason, RequestError
from opscope.serving.loaded_model import LoadedModel
from opscope.serving.request import InferReply, InferRequest
from tests.serving.running import config_of

Test = Callable[[], Coroutine[Any, Any, None]]


class Gate:
    """A model that doubles, once it may; it fails for negative numbers."""

    def __init__(self) -> None:
        self.may_run = threading.Event()
        self.has_begun = threading.Event()
        self.batches: list[int] = []

    def __call__(self, x: Any) -> Any:
        self.batches.append(x.shape[0])
        self.has_begun.set()
        assert self.may_run.wait(60)
        if float(x.min().item()) < 0:
            raise ValueError("a negative number")
        return x * 2.0


@pytest.fixture
def gate() -> Iterator[Gate]:
    found = Gate()
    yield found
    found.may_run.set()


def request(value: float, rows: int = 1, timeout_ns: int | None = None) -> InferRequest:
    return InferRequest([ot.full((rows, 4), value)], (), timeout_ns)


def value(reply: InferReply) -> float:
    return float(reply.outputs["y"].reshape(-1)[0].item())


def executor(gate: Gate, **rule: Any) -> Executor:
    rule.setdefault("max_batch_size", 4)
    return Executor(LoadedModel("gate", "1", gate, config_of(Rule(**rule))))


def test_requests_that_wait_for_the_model_share_its_next_batch(gate: Gate) -> None:
    async def main() -> None:
        of = executor(gate)
        first = asyncio.ensure_future(of.infer(request(1.0)))
        await asyncio.to_thread(gate.has_begun.wait, 60)
        others = [asyncio.ensure_future(of.infer(request(float(n)))) for n in range(2, 8)]
        await asyncio.sleep(0)
        gate.may_run.set()
        replies = await asyncio.gather(first, *others)
        assert [value(one) for one in replies] == [2.0 * n for n in range(1, 8)]
        assert [one.batch_size for one in replies] == [1, 4, 4, 4, 4, 2, 2]
        assert gate.batches == [1, 4, 2]
        await of.close()

    asyncio.run(main())


def test_a_cancelled_request_leaves_the_queue(gate: Gate) -> None:
    async def main() -> None:
        of = executor(gate)
        first = asyncio.ensure_future(of.infer(request(1.0)))
        await asyncio.to_thread(gate.has_begun.wait, 60)
        second, third = (asyncio.ensure_future(of.infer(request(n))) for n in (2.0, 3.0))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.sleep(0)
        assert of.in_flight == 2
        gate.may_run.set()
        assert value(await first) == 2.0
        assert value(await third) == 6.0
        assert gate.batches == [1, 1]
        with pytest.raises(asyncio.CancelledError):
            await second
        await of.close()

    asyncio.run(main())


def test_a_request_past_its_deadline_is_answered_while_the_model_is_busy(gate: Gate) -> None:
    async def main() -> None:
        of = executor(gate)
        first = asyncio.ensure_future(of.infer(request(1.0)))
        await asyncio.to_thread(gate.has_begun.wait, 60)
        with pytest.raises(RequestError) as caught:
            await of.infer(request(2.0, timeout_ns=1_000_000))
        assert caught.value.reason is Reason.DEADLINE
        gate.may_run.set()
        assert value(await first) == 2.0
        assert gate.batches == [1]
        await of.close()

    asyncio.run(main())


def test_a_full_queue_answers_at_once(gate: Gate) -> None:
    async def main() -> None:
        of = executor(gate, max_queue_size=2)
        first = asyncio.ensure_future(of.infer(request(1.0)))
        await asyncio.to_thread(gate.has_begun.wait, 60)
        waiting = [asyncio.ensure_future(of.infer(request(2.0))) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(RequestError) as caught:
            await of.infer(request(3.0))
        assert caught.value.reason is Reason.OVERLOAD
        gate.may_run.set()
        assert [value(one) for one in await asyncio.gather(first, *waiting)] == [2.0, 4.0, 4.0]
        await of.close()

    asyncio.run(main())


def test_one_bad_request_in_a_batch_fails_alone(gate: Gate) -> None:
    async def main() -> None:
        of = executor(gate, max_queue_delay_ns=10**9)
        gate.may_run.set()
        found = await asyncio.gather(
            *(of.infer(request(n)) for n in (1.0, -2.0, 3.0, 4.0)), return_exceptions=True
        )
        assert [value(found[n]) for n in (0, 2, 3)] == [2.0, 6.0, 8.0]  # type: ignore[arg-type]
        bad = found[1]
        assert isinstance(bad, RequestError)
        assert (bad.reason, str(bad)) == (Reason.MODEL, "ValueError: a negative number")
        assert gate.batches == [4, 1, 1, 1, 1]
        assert value(await of.infer(request(5.0, rows=4))) == 10.0
        await of.close()

    asyncio.run(main())


def test_close_waits_for_all_answers(gate: Gate) -> None:
    async def main() -> None:
        of = executor(gate)
        waiting = [asyncio.ensure_future(of.infer(request(2.0))) for _ in range(9)]
        await asyncio.to_thread(gate.has_begun.wait, 60)
        closing = asyncio.ensure_future(of.close())
        await asyncio.sleep(0)
        assert not closing.done()
        gate.may_run.set()
        await closing
        assert all(one.done() for one in waiting)
        assert [value(one.result()) for one in waiting] == [4.0] * 9

    asyncio.run(main())


def test_an_output_that_is_not_as_described_is_a_fault() -> None:
    async def main() -> None:
        config = config_of(Rule(max_batch_size=4))
        of = Executor(LoadedModel("sum", "1", lambda x: x.sum(0), config))
        with pytest.raises(RequestError, match="not as described"):
            await of.infer(request(1.0))
        await of.close()

    asyncio.run(main())
