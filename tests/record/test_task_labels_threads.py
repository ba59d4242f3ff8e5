"""Labels of tasks on other threads: of executors, of forked tasks, of event loops."""

import asyncio
import contextvars
import functools
import importlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import opscope
from opscope import debug_info, get_debug_info, propagate
from tests.record.conftest import Run, label

pytestmark = pytest.mark.usefixtures("no_labels")


def test_to_thread_takes_labels_along_and_run_in_executor_does_not(run: Run) -> None:
    async def request(number: int) -> None:
        loop = asyncio.get_running_loop()
        with debug_info(a=number):
            assert await asyncio.to_thread(label) == str(number)
            assert await loop.run_in_executor(None, label) is None
            run_here = propagate(label)
            assert await loop.run_in_executor(None, run_here) == str(number)
            copied = functools.partial(contextvars.copy_context().run, label)
            assert await loop.run_in_executor(None, copied) == str(number)
        assert await asyncio.to_thread(label) is None

    async def serve() -> None:
        await asyncio.gather(*(request(number) for number in range(10)))

    run(serve())


def test_to_thread_takes_labels_along_that_are_around_the_loop(run: Run) -> None:
    async def work() -> dict[str, str]:
        return await asyncio.to_thread(get_debug_info)

    with debug_info(a=1):
        assert run(work()) == {"a": "1"}


def test_a_thread_of_an_executor_has_its_own_labels_back(run: Run) -> None:
    def fail() -> None:
        with debug_info(b=2):
            debug_info(c=3).__enter__()
            raise LookupError(str(get_debug_info()))

    async def work(pool: ThreadPoolExecutor) -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(pool)
        with debug_info(a=1):
            with pytest.raises(LookupError, match="'a': '1'"):
                await asyncio.to_thread(fail)
            assert await loop.run_in_executor(None, get_debug_info) == {}
            assert await asyncio.to_thread(get_debug_info) == {"a": "1"}

    with ThreadPoolExecutor(1) as pool:
        run(work(pool))


def test_a_loop_on_a_thread_of_an_executor_has_the_labels_of_that_thread(run: Run) -> None:
    async def inner() -> dict[str, str]:
        await asyncio.sleep(0)
        return get_debug_info()

    def on_thread() -> dict[str, str]:
        with debug_info(b=2):
            return asyncio.run(inner())

    async def work() -> None:
        with debug_info(a=1):
            assert await asyncio.to_thread(on_thread) == {"a": "1", "b": "2"}

    run(work())


def test_loops_on_several_threads_keep_their_labels_apart(run: Run) -> None:
    async def request(number: int) -> None:
        with debug_info(a=number):
            for _ in range(20):
                await asyncio.sleep(0)
                assert label() == str(number)

    async def serve(first: int) -> None:
        await asyncio.gather(*(request(number) for number in range(first, first + 5)))

    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(run, serve(10 * number)) for number in range(4)]:
            future.result()


def test_forked_and_propagated_work_has_the_tasks_labels(run: Run) -> None:
    async def request(number: int) -> None:
        with debug_info(a=number):
            await asyncio.sleep(0)
            assert opscope.wait(opscope.fork(label)) == str(number)

    async def serve() -> None:
        await asyncio.gather(*(request(number) for number in range(5)))

    run(serve())


def test_a_propagated_function_within_a_task_leaves_the_labels_of_the_task(run: Run) -> None:
    def work() -> asyncio.Task[dict[str, str]]:
        assert get_debug_info() == {"a": "captured"}
        with debug_info(b=2):
            assert get_debug_info() == {"a": "captured", "b": "2"}
        return asyncio.ensure_future(child())

    async def child() -> dict[str, str]:
        await asyncio.sleep(0)
        return get_debug_info()

    with debug_info(a="captured"):
        carried = propagate(work)

    async def serve() -> None:
        await carried()  # while no loop of the process may have been followed yet
        with debug_info(a=1):
            forked = carried()
            assert get_debug_info() == {"a": "1"}
            await asyncio.sleep(0)
            assert get_debug_info() == {"a": "1"}
            assert await forked == {"a": "captured"}
        await asyncio.sleep(0)
        assert get_debug_info() == {}

    run(serve())


def test_the_recording_switch_stays_its_threads(run: Run) -> None:
    async def work(number: int) -> None:
        with debug_info(a=number), opscope.recording(False):
            await asyncio.sleep(0.001 * number)

    async def serve() -> None:
        await asyncio.gather(*(work(number) for number in (3, 1, 2)))

    run(serve())
    opscope.add_global_callback(lambda fn: None)
    assert opscope.has_callbacks()


def test_threads_and_task_groups_of_anyio_have_the_labels_of_the_task() -> None:
    pytest.importorskip("anyio")
    anyio: Any = importlib.import_module("anyio")
    to_thread: Any = importlib.import_module("anyio.to_thread")

    async def request(number: int) -> None:
        with debug_info(a=number):
            await anyio.sleep(0)
            assert label() == str(number)
            assert await to_thread.run_sync(label) == str(number)
        assert await to_thread.run_sync(label) is None

    async def serve() -> None:
        async with anyio.create_task_group() as group:
            for number in range(5):
                group.start_soon(request, number)

    anyio.run(serve)
