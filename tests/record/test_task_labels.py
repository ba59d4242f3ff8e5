"""Labels of tasks that take turns on the thread of an event loop: each task has its own.

`get_debug_info` reads the labels in force on the thread in C, under which ranges are counted.
"""

import asyncio
import gc
import sys
import weakref
from collections.abc import AsyncIterator, Awaitable, Iterator
from typing import Any

import pytest

from opscope import debug_info, get_debug_info
from tests.record.conftest import Run, label
from tests.record.programs import output_of

pytestmark = pytest.mark.usefixtures("no_labels")


def test_each_of_many_tasks_has_its_own_labels_after_every_await(run: Run) -> None:
    async def request(number: int) -> list[str | None]:
        seen = [label()]
        with debug_info(a=number):
            for turn in range(5):
                seen.append(label())
                with debug_info(a=f"{number}.{turn}"):
                    await asyncio.sleep(0.001 * (number % 3))
                    seen.append(label())
                await asyncio.sleep(0)
        seen.append(label())
        return seen

    async def serve() -> list[list[str | None]]:
        return await asyncio.gather(*(request(number) for number in range(10)))

    for number, seen in enumerate(run(serve())):
        inside = [text for turn in range(5) for text in (f"{number}", f"{number}.{turn}")]
        assert seen == [None, *inside, None]


def test_a_task_without_labels_has_none_beside_labelled_tasks(run: Run) -> None:
    async def labelled() -> None:
        with debug_info(a=1):
            for _ in range(10):
                await asyncio.sleep(0)
                assert label() == "1"

    async def bare(seen: set[str | None]) -> None:
        for _ in range(10):
            seen.add(label())
            await asyncio.sleep(0)

    async def serve() -> set[str | None]:
        seen: set[str | None] = set()
        await asyncio.gather(labelled(), bare(seen), labelled(), bare(seen))
        return seen

    assert run(serve()) == {None}


def test_a_task_starts_with_the_labels_of_its_creator_and_keeps_them(run: Run) -> None:
    async def child(own: str | None) -> list[dict[str, str]]:
        seen = [get_debug_info()]
        await asyncio.sleep(0.001)
        with debug_info(own=own):
            await asyncio.sleep(0)
            seen.append(get_debug_info())
        await asyncio.sleep(0)
        seen.append(get_debug_info())
        return seen

    async def parent() -> None:
        with debug_info(a=1):
            first = asyncio.create_task(child("x"))
            with debug_info(b=2):
                second = asyncio.create_task(child("y"))
        assert get_debug_info() == {}
        third = asyncio.create_task(child(None))
        await asyncio.sleep(0)
        assert get_debug_info() == {}
        both = {"a": "1", "b": "2"}
        assert await first == [{"a": "1"}, {"a": "1", "own": "x"}, {"a": "1"}]
        assert await second == [both, both | {"own": "y"}, both]
        assert await third == [{}, {}, {}]

    run(parent())


def test_labels_around_the_loop_hold_in_its_tasks(run: Run) -> None:
    async def work() -> None:
        assert get_debug_info() == {"a": "1"}
        with debug_info(a=None, b=2):
            await asyncio.sleep(0)
            assert get_debug_info() == {"b": "2"}
        await asyncio.sleep(0)
        assert get_debug_info() == {"a": "1"}

    async def serve() -> None:
        await asyncio.gather(work(), work())

    for _ in range(2):
        with debug_info(a=1):
            run(serve())
            assert get_debug_info() == {"a": "1"}


def test_callbacks_of_the_loop_have_the_labels_they_were_scheduled_with() -> None:
    async def work() -> list[str | None]:
        loop = asyncio.get_running_loop()
        seen: list[str | None] = []
        with debug_info(a=1):
            loop.call_soon(lambda: seen.append(label()))
            loop.call_later(0.001, lambda: seen.append(label()))
        loop.call_soon(lambda: seen.append(label()))
        await asyncio.sleep(0.01)
        return seen

    assert asyncio.run(work()) == ["1", None, "1"]


def test_labels_left_by_an_exception_or_a_cancellation_are_gone(run: Run) -> None:
    async def request() -> None:
        try:
            with debug_info(a=1):
                await asyncio.sleep(60)
        finally:
            assert label() is None
            await asyncio.sleep(0)
            assert label() is None

    async def serve() -> None:
        tasks = [asyncio.create_task(request()) for _ in range(3)]
        await asyncio.sleep(0.001)
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(result) for result in results} == {asyncio.CancelledError}
        assert label() is None

    run(serve())


def test_labels_that_a_task_never_leaves_end_with_it(run: Run) -> None:
    async def work() -> None:
        debug_info(a=1).__enter__()

    async def serve() -> None:
        await asyncio.create_task(work())
        assert label() is None
        debug_info(a=2).__enter__()

    run(serve())
    with debug_info(b=1):
        assert get_debug_info() == {"b": "1"}


def test_an_async_generator_has_the_labels_of_the_task_that_iterates(run: Run) -> None:
    async def numbers() -> AsyncIterator[int]:
        with debug_info(a="inside"):
            for number in range(3):
                await asyncio.sleep(0)
                assert label() == "inside"
                yield number

    async def work() -> None:
        with debug_info(b=1):
            assert [number async for number in numbers()] == [0, 1, 2]
            assert get_debug_info() == {"b": "1"}

    async def serve() -> None:
        await asyncio.gather(work(), work(), work())

    run(serve())


def test_blocks_of_generators_within_a_task_may_end_in_any_order(run: Run) -> None:
    def labelled(**labels: object) -> Iterator[None]:
        with debug_info(**labels):
            yield

    async def work() -> None:
        outer, inner = labelled(a=1), labelled(b=2)
        next(outer)
        await asyncio.sleep(0)
        next(inner)
        next(outer, None)
        await asyncio.sleep(0)
        assert get_debug_info() == {"a": "1", "b": "2"}
        next(inner, None)
        await asyncio.sleep(0)
        assert get_debug_info() == {}

    async def serve() -> None:
        await asyncio.gather(work(), work())

    run(serve())


def test_one_instance_may_be_in_force_in_several_tasks_at_once(run: Run) -> None:
    shared = debug_info(a=1)

    async def work(number: int) -> None:
        for _ in range(number):
            await asyncio.sleep(0)
        with shared:
            await asyncio.sleep(0.001)
            assert label() == "1"
        assert label() is None

    async def serve() -> None:
        await asyncio.gather(*(work(number) for number in range(5)))

    run(serve())


def test_a_task_that_has_ended_is_not_kept_by_those_it_created(run: Run) -> None:
    async def parent() -> asyncio.Task[None]:
        with debug_info(a=1):
            return asyncio.create_task(child())

    async def child() -> None:
        await asyncio.sleep(0.01)
        assert label() == "1"

    async def serve() -> None:
        task = asyncio.create_task(parent())
        watched = weakref.ref(task)
        forked = await task
        del task
        await asyncio.sleep(0)
        gc.collect()
        assert watched() is None
        await forked

    run(serve())


# ---- the first block of a process --------------------------------------------------------------


def test_the_first_block_in_a_running_loop_is_its_tasks_alone() -> None:
    """Tasks that were scheduled before it do not get its labels."""
    code = """
import asyncio, opscope

async def request(number):
    seen = {opscope.get_debug_info("a")}
    with opscope.debug_info(a=number):
        for _ in range(3):
            await asyncio.sleep(0)
            seen.add(opscope.get_debug_info("a"))
    return seen == {None, str(number)}

async def serve():
    return await asyncio.gather(*(request(number) for number in range(10)))

print(all(asyncio.run(serve())), opscope.get_debug_info())
"""
    assert output_of(code) == ["True {}"]


def test_loops_of_a_program_without_labels_in_them_run_as_they_are() -> None:
    code = """
import asyncio, opscope
before = asyncio.events.Handle._run, asyncio.base_events.BaseEventLoop.call_soon
async def work():
    with opscope.record_function("x"):
        await asyncio.sleep(0)
asyncio.run(work())
with opscope.debug_info(a=1):
    asyncio.run(work())
print(before == (asyncio.events.Handle._run, asyncio.base_events.BaseEventLoop.call_soon))
"""
    assert output_of(code) == ["True"]


def test_asyncio_is_not_imported_for_labels() -> None:
    code = """
import sys, opscope
with opscope.debug_info(a=1):
    pass
print("asyncio" in sys.modules)
"""
    assert output_of(code) == ["False"]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with Python 3.12")
def test_eager_tasks_have_their_own_labels_from_their_second_step_on() -> None:
    async def request(number: int) -> None:
        with debug_info(a=number):
            await asyncio.sleep(0)
            assert label() == str(number)

    async def serve() -> None:
        factory: Any = getattr(asyncio, "eager_task_factory")  # noqa: B009 - of a later Python
        asyncio.get_running_loop().set_task_factory(factory)
        tasks: list[Awaitable[None]] = [asyncio.create_task(request(n)) for n in range(5)]
        await asyncio.gather(*tasks)
        assert label() is None

    asyncio.run(serve())
