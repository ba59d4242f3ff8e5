"""Callbacks added and removed while ranges are open, from other threads, and within callbacks."""

import threading

import pytest

import opscope
from tests.waiting import until


def open_range(name: str = "x") -> None:
    with opscope.record_function(name):
        pass


# ---- open ranges ----------------------------------------------------------------------------


def test_a_callback_removed_while_a_range_is_open_still_gets_its_end() -> None:
    calls: list[object] = []
    handle = opscope.add_global_callback(
        lambda fn: "context", lambda fn, context: calls.append(context)
    )
    with opscope.record_function("x"):
        opscope.remove_callback(handle)
        assert calls == []
    assert calls == ["context"]
    open_range()
    assert calls == ["context"]


def test_a_callback_added_while_a_range_is_open_gets_nothing_for_it() -> None:
    calls: list[str] = []
    opscope.add_global_callback()  # so that the range is a real one
    with opscope.record_function("outer"):
        opscope.add_global_callback(
            lambda fn: calls.append(f"start {fn.name}"),
            lambda fn, _: calls.append(f"end {fn.name}"),
        )
        open_range("inner")
    assert calls == ["start inner", "end inner"]


def test_remove_with_wait_returns_when_the_last_range_of_another_thread_is_closed() -> None:
    ended: list[str] = []
    handle = opscope.add_global_callback(None, lambda fn, _: ended.append(fn.name))
    is_open = threading.Event()
    may_close = threading.Event()

    def hold() -> None:
        with opscope.record_function("held"):
            is_open.set()
            assert may_close.wait(30)

    holder = threading.Thread(target=hold)
    holder.start()
    assert is_open.wait(30)
    removed: list[list[str]] = []

    def remove() -> None:
        opscope.remove_callback(handle, wait=True)
        removed.append(list(ended))

    remover = threading.Thread(target=remove)
    remover.start()
    until(lambda: not opscope.has_callbacks(), "the remover begins")
    assert removed == []
    may_close.set()
    remover.join(30)
    holder.join(30)
    assert removed == [["held"]]


def test_remove_with_wait_within_a_range_of_ones_own_is_an_error_and_removes() -> None:
    handle = opscope.add_global_callback()
    with opscope.record_function("x"), pytest.raises(opscope.CallbackError, match=str(handle)):
        opscope.remove_callback(handle, wait=True)
    assert not opscope.has_callbacks()


def test_remove_with_wait_within_the_callback_itself_is_an_error() -> None:
    errors: list[opscope.CallbackError] = []

    def start(fn: opscope.RecordFunction) -> None:
        try:
            opscope.remove_callback(handle, wait=True)
        except opscope.CallbackError as error:
            errors.append(error)

    handle = opscope.add_global_callback(start)
    open_range()
    assert len(errors) == 1


# ---- inside a callback ----------------------------------------------------------------------


def test_ranges_opened_by_a_callback_are_seen_by_none() -> None:
    names: list[str] = []

    def start(fn: opscope.RecordFunction) -> None:
        names.append(fn.name)
        open_range("inside")

    opscope.add_global_callback(start, lambda fn, _: open_range("inside"))
    opscope.add_global_callback(lambda fn: names.append(fn.name))
    open_range("x")
    open_range("y")
    assert names == ["x", "x", "y", "y"]


def test_a_callback_may_remove_itself_and_others_and_add_more() -> None:
    calls: list[str] = []

    def start(fn: opscope.RecordFunction) -> None:
        calls.append("start")
        opscope.remove_callback(own)
        opscope.remove_callback(other)
        opscope.add_global_callback(lambda fn: calls.append("added"))

    own = opscope.add_global_callback(start, lambda fn, _: calls.append("end"))
    other = opscope.add_global_callback(
        lambda fn: calls.append("other start"), lambda fn, _: calls.append("other end")
    )
    open_range()
    assert calls == ["start", "other start", "end", "other end"]
    open_range()
    assert calls[4:] == ["added"]


def test_a_callback_may_fork_a_task_and_wait_for_it() -> None:
    results: list[int] = []
    opscope.add_global_callback(lambda fn: results.append(opscope.wait(opscope.fork(int, "7"))))
    open_range()
    assert results == [7]


def test_a_callback_may_clear_all_callbacks() -> None:
    opscope.add_global_callback(lambda fn: opscope.clear_callbacks(), lambda fn, _: None)
    open_range()
    assert not opscope.has_callbacks()


def test_callbacks_come_and_go_while_other_threads_open_ranges() -> None:
    stop = threading.Event()
    started: list[int] = []
    ended: list[int] = []

    def work() -> None:
        while not stop.is_set():
            with opscope.record_function("outer"):
                open_range("inner")

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for turn in range(200):
        handle = opscope.add_global_callback(
            lambda fn: started.append(1), lambda fn, _: ended.append(1)
        )
        opscope.remove_callback(handle, wait=turn % 2 == 0)
    stop.set()
    for thread in threads:
        thread.join()
    assert len(started) == len(ended)
