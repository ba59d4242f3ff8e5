"""record_function around blocks, functions, coroutines and generators; and the switch recording."""

import asyncio
import inspect
import threading
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import opscope
from opscope import RecordScope, record_function, recording
from opscope._native import lib
from opscope.host.host import Host


@pytest.fixture
def calls() -> list[str]:
    """What callbacks see from here on: "+name" for a start, "-name" for an end, "!name" for the end
    of a range that failed."""
    noted: list[str] = []
    opscope.add_global_callback(
        lambda fn: noted.append(f"+{fn.name}"),
        lambda fn, _: noted.append(f"{'!' if fn.failed else '-'}{fn.name}"),
    )
    return noted


# ---- blocks ---------------------------------------------------------------------------------


def test_a_block_is_a_range(calls: list[str]) -> None:
    with record_function("x") as entered:
        assert calls == ["+x"]
        assert isinstance(entered, record_function)
    assert calls == ["+x", "-x"]


def test_ranges_nest(calls: list[str]) -> None:
    with record_function("outer"), record_function("inner"):
        pass
    assert calls == ["+outer", "+inner", "-inner", "-outer"]


def test_an_exception_goes_through_and_fails_the_ranges_it_leaves(calls: list[str]) -> None:
    error = KeyError("x")

    def fail() -> None:
        with record_function("outer"):
            with record_function("good"):
                pass
            with record_function("bad"):
                raise error

    with pytest.raises(KeyError) as caught:
        fail()
    assert caught.value is error
    assert calls == ["+outer", "+good", "-good", "+bad", "!bad", "!outer"]


def test_an_instance_may_be_used_again(calls: list[str]) -> None:
    again = record_function("x")
    for _ in range(2):
        with again:
            pass
    assert calls == ["+x", "-x"] * 2


def test_an_instance_may_be_entered_again_while_open(calls: list[str]) -> None:
    again = record_function("x")
    with again, again, again:
        pass
    assert calls == ["+x"] * 3 + ["-x"] * 3


def test_ends_of_one_instance_find_their_starts_when_callbacks_go_in_between() -> None:
    ended: list[str] = []
    handle = opscope.add_global_callback(None, lambda fn, _: ended.append(fn.name))
    again = record_function("x")
    with again:
        opscope.remove_callback(handle)
        with again:
            pass
        assert ended == []
    assert ended == ["x"]


def test_scopes_come_through_as_members_or_numbers() -> None:
    scopes: list[RecordScope] = []
    opscope.add_global_callback(lambda fn: scopes.append(fn.scope))
    for scope in RecordScope:
        with record_function("x", scope=scope):
            pass
        with record_function("x", scope=int(scope)):
            pass
    assert scopes == [scope for scope in RecordScope for _ in range(2)]


@pytest.mark.parametrize("scope", [-1, 10, 99])
def test_an_unknown_scope_is_an_error_whether_anybody_watches_or_not(scope: int) -> None:
    with pytest.raises(ValueError, match=str(scope)):
        record_function("x", scope=scope)


@pytest.mark.parametrize(
    ("name", "seen_as"),
    [
        ("", "other"),
        ("a\0b", "ab"),
        ("größe ∑", "größe ∑"),
        ("\ud800", "?"),
        ("x" * 10_000, "x" * 10_000),
        (7, "7"),
    ],
)
def test_no_name_makes_a_program_fail_that_ran_unobserved(
    name: str, seen_as: str, seen: list[str]
) -> None:
    with record_function(name):
        pass
    assert seen == [seen_as]


def test_ranges_without_callbacks_leave_nothing_open(seen: list[str]) -> None:
    opscope.clear_callbacks()
    with record_function("unseen"):
        handle = opscope.add_global_callback(lambda fn: seen.append(fn.name))
    opscope.remove_callback(handle, wait=True)
    assert seen == []


def test_more_names_than_there_is_room_for_are_seen_as_other() -> None:
    from tests.record.programs import output_of

    code = """
import opscope
names = set()
opscope.add_global_callback(lambda fn: names.add(fn.name))
for number in range(66_000):
    with opscope.record_function(f"op {number}"): pass
print(len(names), "other" in names)
"""
    assert output_of(code) == ["65536 True"]


# ---- decorated ------------------------------------------------------------------------------


def test_a_decorated_function_is_a_range_at_each_call(calls: list[str]) -> None:
    @record_function("double")
    def double(x: int) -> int:
        """Twice x."""
        return 2 * x

    assert (double(2), double(x=3)) == (4, 6)
    assert calls == ["+double", "-double"] * 2
    assert double.__name__ == "double"
    assert double.__doc__ == "Twice x."


def test_a_decorated_function_may_call_itself(calls: list[str]) -> None:
    @record_function("f")
    def factorial(n: int) -> int:
        return n * factorial(n - 1) if n else 1

    assert factorial(3) == 6
    assert calls == ["+f"] * 4 + ["-f"] * 4


def test_a_decorated_function_that_raises_is_a_failed_range(calls: list[str]) -> None:
    @record_function("f")
    def fail() -> None:
        raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert calls == ["+f", "!f"]


def test_methods_can_be_decorated(calls: list[str]) -> None:
    class Model:
        @record_function("method")
        def method(self) -> object:
            return self

        @staticmethod
        @record_function("static")
        def static() -> int:
            return 1

    model = Model()
    assert model.method() is model
    assert model.static() == 1
    assert calls == ["+method", "-method", "+static", "-static"]


def test_one_decorator_may_serve_several_threads_at_once() -> None:
    decorate = record_function("work")
    open_ranges: list[int] = []
    opscope.add_global_callback(
        lambda fn: fn.thread_id,
        lambda fn, started_on: open_ranges.append(started_on - fn.thread_id),
    )

    @decorate
    def work() -> None:
        pass

    def many() -> None:
        for _ in range(500):
            work()

    threads = [threading.Thread(target=many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert open_ranges == [0] * 2000


def test_a_decorated_coroutine_function_is_one_async_range_from_first_step_to_end(
    calls: list[str],
) -> None:
    asyncs: list[bool] = []
    opscope.add_global_callback(lambda fn: asyncs.append(fn.is_async))

    @record_function("load")
    async def load(number: int) -> int:
        await asyncio.sleep(0)
        return number

    async def both() -> list[int]:
        created = load(1)
        assert calls == []
        return list(await asyncio.gather(created, load(2)))

    assert inspect.iscoroutinefunction(load)
    assert asyncio.run(both()) == [1, 2]
    assert calls == ["+load", "+load", "-load", "-load"]
    assert asyncs == [True, True]


def test_a_decorated_generator_function_is_one_range_from_first_step_to_end(
    calls: list[str],
) -> None:
    @record_function("numbers")
    def numbers() -> Generator[int, int, str]:
        got = yield 1
        yield got
        return "end"

    assert inspect.isgeneratorfunction(numbers)
    generator = numbers()
    assert calls == []
    assert next(generator) == 1
    assert calls == ["+numbers"]
    assert generator.send(7) == 7
    with pytest.raises(StopIteration) as stop:
        next(generator)
    assert stop.value.value == "end"
    assert calls == ["+numbers", "-numbers"]


def test_a_generator_closed_early_has_not_failed(calls: list[str]) -> None:
    @record_function("numbers")
    def numbers() -> Iterator[int]:
        yield 1
        yield 2

    for _ in numbers():
        break
    assert calls == ["+numbers", "-numbers"]


def test_an_async_generator_function_cannot_be_decorated() -> None:
    async def numbers() -> object:
        yield 1

    with pytest.raises(TypeError, match="use `with record_function"):
        record_function("numbers")(numbers)


# ---- out of order ---------------------------------------------------------------------------


def in_a_range(name: str) -> Iterator[None]:
    with record_function(name):
        yield


def test_generators_may_end_their_ranges_in_any_order(calls: list[str]) -> None:
    one, two, three = (in_a_range(name) for name in "abc")
    for generator in (one, two, three):
        next(generator)
    for generator in (two, one, three):
        assert next(generator, "end") == "end"
    assert calls == ["+a", "+b", "+c", "-b", "-a", "-c"]


def test_a_range_may_be_closed_on_another_thread(calls: list[str]) -> None:
    generator = in_a_range("x")
    next(generator)
    thread = threading.Thread(target=lambda: next(generator, None))
    thread.start()
    thread.join()
    assert calls == ["+x", "-x"]
    handle = opscope.add_global_callback()
    opscope.remove_callback(handle, wait=True)


def test_blocks_that_another_thread_ends_leave_room_for_later_ranges(tmp_path: Path) -> None:
    """A generator that a pool's threads resume in turn begins such a block on one of them."""
    from opscope.record import recorder

    recorder.start(str(tmp_path))
    with ThreadPoolExecutor(1) as other:
        for _ in range(600):
            generator = in_a_range("resumed elsewhere")
            next(generator)
            other.submit(next, generator, None).result()
    for _ in range(10):
        with opscope.record_function("later"):
            pass
    snapshot = Host([str(tmp_path)], consume=False).collect()
    recorder.stop(discard=True)
    calls = {key.op: count for key, count in zip(snapshot.keys, snapshot.calls, strict=True)}
    assert calls == {"later": 10}


def test_the_recorder_survives_ranges_ended_out_of_order(tmp_path: Path) -> None:
    from opscope.record import recorder

    recorder.start(str(tmp_path))
    generators = [in_a_range(f"range {number % 7}") for number in range(300)]
    for generator in generators:
        next(generator)
    for step in (3, 2, 1):
        for generator in generators[::step]:
            next(generator, None)
    assert recorder.status().running
    recorder.stop(discard=True)


# ---- the switch -----------------------------------------------------------------------------


def test_the_switch_is_on_at_first_and_silences_global_and_local_callbacks(
    seen: list[str],
) -> None:
    local: list[str] = []
    opscope.add_thread_local_callback(lambda fn: local.append(fn.name))
    with record_function("on"):
        pass
    with recording(False), record_function("off"):
        pass
    with record_function("on again"):
        pass
    assert seen == local == ["on", "on again"]


def test_switches_nest_and_restore_also_when_the_block_raises() -> None:
    assert lib.opscope_recording()

    def fail() -> None:
        with recording(False):
            with recording(True):
                assert lib.opscope_recording()
                with recording(True):
                    pass
                assert lib.opscope_recording()
            assert not lib.opscope_recording()
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert lib.opscope_recording()


def test_one_switch_may_be_entered_again_while_it_is_in_force() -> None:
    off = recording(False)
    with off:
        with off:
            pass
        assert not lib.opscope_recording()
    assert lib.opscope_recording()


def test_the_switch_is_its_threads_own() -> None:
    there: list[bool] = []
    with recording(False):
        thread = threading.Thread(target=lambda: there.append(bool(lib.opscope_recording())))
        thread.start()
        thread.join()
    assert there == [True]


def test_a_range_open_when_the_switch_goes_off_still_gets_its_end(calls: list[str]) -> None:
    off = recording(False)
    with record_function("x"):
        off.__enter__()
    assert calls == ["+x", "-x"]
    off.__exit__()


def test_the_switch_is_on_again_after_coroutines_that_turned_it_off_interleaved() -> None:
    async def quiet(turns: int) -> None:
        with recording(False):
            for _ in range(turns):
                await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(quiet(1), quiet(5), quiet(3))

    asyncio.run(main())
    assert lib.opscope_recording()
