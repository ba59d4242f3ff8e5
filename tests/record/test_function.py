"""`fn`: the attributes that a callback gets, their lifetime, and that nothing leaks."""

import gc
import threading
import tracemalloc
import weakref

import pytest

import opscope
from opscope import RecordFunction, RecordScope, record_function
from opscope._native import lib


class Thing:
    """Something a weak reference can watch."""


def caught(**keywords: bool) -> RecordFunction:
    """The `fn` of one range, kept by its callback."""
    kept: list[RecordFunction] = []
    handle = opscope.add_global_callback(kept.append, **keywords)  # type: ignore[arg-type]
    with record_function("x", 1):
        pass
    opscope.remove_callback(handle)
    return kept[0]


def test_fn_tells_the_range() -> None:
    fn = caught()
    assert (fn.name, fn.overload_name, fn.scope) == ("x", "", RecordScope.USER_SCOPE)
    assert isinstance(fn.scope, RecordScope)
    assert fn.thread_id == lib.opscope_thread_id()
    assert (fn.sequence_nr, fn.forward_thread_id, fn.is_async) == (-1, 0, False)
    assert repr(fn) == f"<RecordFunction 'x' scope=USER_SCOPE thread={fn.thread_id}>"


def test_start_and_end_get_the_same_range() -> None:
    told: list[tuple[object, ...]] = []

    def note(fn: RecordFunction, *_: object) -> None:
        told.append((fn.name, fn.scope, fn.handle, fn.thread_id, fn.debug_info))

    opscope.add_global_callback(note, note, needs_ids=True)
    with opscope.debug_info(model_id="m"), record_function("x"):
        pass
    assert told[0] == told[1]


def test_threads_have_ids_of_their_own() -> None:
    ids: set[int] = set()
    opscope.add_global_callback(lambda fn: ids.add(fn.thread_id))

    def work() -> None:
        with record_function("x"):
            pass

    for _ in range(3):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    work()
    assert len(ids) == 4


def test_handles_are_unique_and_there_only_where_asked_for() -> None:
    handles: list[int] = []
    handle = opscope.add_global_callback(lambda fn: handles.append(fn.handle), needs_ids=True)

    def work() -> None:
        for _ in range(100):
            with record_function("x"):
                pass

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(handles)) == 300
    assert 0 not in handles
    opscope.remove_callback(handle)
    assert caught().handle == 0


def test_debug_info_is_that_of_the_opening_thread() -> None:
    told: list[dict[str, str]] = []
    opscope.add_global_callback(lambda fn: told.append(fn.debug_info))
    with opscope.debug_info(a=1, b=2), opscope.debug_info(a=3), record_function("x"):
        pass
    assert told == [{"a": "3", "b": "2"}]


@pytest.mark.parametrize("name", ["inputs", "outputs", "debug_info", "failed"])
def test_values_valid_only_during_the_callback_raise_later(name: str) -> None:
    fn = caught(needs_inputs=True, needs_outputs=True)
    with pytest.raises(RuntimeError, match=r"x: .*can only be read during the callback"):
        getattr(fn, name)


def test_a_kept_fn_is_closed_also_when_its_callback_raised(
    caplog: pytest.LogCaptureFixture,
) -> None:
    kept: list[RecordFunction] = []

    def start(fn: RecordFunction) -> None:
        kept.append(fn)
        raise KeyError

    opscope.add_global_callback(start)
    with record_function("x"), pytest.raises(RuntimeError):
        _ = kept[0].debug_info


def test_ranges_contexts_and_arguments_are_not_kept_alive() -> None:
    context: list[weakref.ref[Thing]] = []

    def start(fn: RecordFunction) -> Thing:
        _ = fn.inputs
        thing = Thing()
        context.append(weakref.ref(thing))
        return thing

    def end(fn: RecordFunction, thing: Thing) -> None:
        _ = fn.inputs, fn.outputs

    opscope.add_global_callback(start, end, needs_inputs=True, needs_outputs=True)

    @record_function("f")
    def function() -> Thing:
        result = Thing()
        watched.append(weakref.ref(result))
        return result

    argument = Thing()
    watched = [weakref.ref(argument)]
    gc.disable()
    try:
        with record_function("x", argument):
            pass
        function()
        del argument
        assert [ref() for ref in watched + context] == [None] * 4
    finally:
        gc.enable()


def test_a_removed_callback_is_let_go_of() -> None:
    class Start:
        def __call__(self, fn: RecordFunction) -> None:
            pass

    start = Start()
    watched = weakref.ref(start)
    handle = opscope.add_global_callback(start)
    with record_function("x"):
        opscope.remove_callback(handle)
        del start
        assert watched() is not None  # its end is yet to come
    with record_function("x"):
        pass
    assert watched() is None


def test_memory_does_not_grow_with_the_number_of_callbacks() -> None:
    opscope.add_global_callback(
        lambda fn: (fn.name, fn.inputs, fn.debug_info),
        lambda fn, context: fn.outputs,
        needs_inputs=True,
        needs_outputs=True,
        needs_ids=True,
    )

    def work(count: int) -> None:
        for number in range(count):
            with record_function("x", number):
                pass

    work(1_000)
    tracemalloc.start()
    try:
        work(1_000)
        before = tracemalloc.get_traced_memory()[0]
        work(10_000)
        assert tracemalloc.get_traced_memory()[0] - before < 20_000
    finally:
        tracemalloc.stop()
