"""Registering callbacks: handles, order, scopes, and invalid arguments."""

import threading
import warnings
from collections.abc import Callable

import pytest

import opscope
from opscope import RecordScope
from tests.record.programs import output_of, run_python

Add = Callable[..., int]

ADDERS = [opscope.add_global_callback, opscope.add_thread_local_callback]


def open_range(name: str = "x", scope: RecordScope = RecordScope.USER_SCOPE) -> None:
    with opscope.record_function(name, scope=scope):
        pass


def in_thread(function: Callable[[], object]) -> None:
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


# ---- handles --------------------------------------------------------------------------------


def test_handles_count_up_over_global_and_local_callbacks_and_are_never_reused() -> None:
    first = opscope.add_global_callback()
    second = opscope.add_thread_local_callback()
    opscope.remove_callback(second)
    opscope.remove_callback(first)
    assert 0 < first < second < opscope.add_global_callback()


def test_the_first_handle_of_a_process_is_1() -> None:
    assert output_of("import opscope; print(opscope.add_global_callback())") == ["1"]


@pytest.mark.parametrize(
    "change", [opscope.remove_callback, opscope.disable_callback, opscope.enable_callback]
)
@pytest.mark.parametrize("handle", [1 << 60, 0, -1, 1 << 64])
def test_an_unknown_handle_is_no_error(change: Callable[[int], None], handle: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        change(handle)


def test_an_unknown_handle_is_warned_of_once_in_a_process() -> None:
    stderr = run_python(
        "import opscope\n"
        "opscope.remove_callback(123)\n"
        "opscope.disable_callback(456)\n"
        "opscope.remove_callback(123)\n"
    ).stderr
    assert stderr.count("RuntimeWarning") == 1
    assert "no callback has the handle 123" in stderr
    assert "<string>:2" in stderr  # the line that asked


def test_another_threads_local_callback_is_an_unknown_handle(seen: list[str]) -> None:
    names: list[str] = []
    handle = opscope.add_thread_local_callback(lambda fn: names.append(fn.name))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        in_thread(lambda: opscope.remove_callback(handle))
    open_range()
    assert names == ["x"]


def test_removing_disabling_and_enabling_twice_does_as_once(seen: list[str]) -> None:
    names: list[str] = []
    handle = opscope.add_global_callback(lambda fn: names.append(fn.name))
    opscope.disable_callback(handle)
    opscope.disable_callback(handle)
    open_range("disabled")
    opscope.enable_callback(handle)
    opscope.enable_callback(handle)
    open_range("enabled")
    opscope.remove_callback(handle)
    open_range("removed")
    assert names == ["enabled"]
    assert seen == ["disabled", "enabled", "removed"]


# ---- who is called --------------------------------------------------------------------------


def test_starts_and_ends_run_in_order_of_registration_global_ones_first() -> None:
    calls: list[str] = []

    def add(adder: Add, name: str) -> None:
        adder(lambda fn: calls.append(f"start {name}"), lambda fn, _: calls.append(f"end {name}"))

    add(opscope.add_thread_local_callback, "local 1")
    add(opscope.add_global_callback, "global 1")
    add(opscope.add_thread_local_callback, "local 2")
    add(opscope.add_global_callback, "global 2")
    open_range()
    order = ["global 1", "global 2", "local 1", "local 2"]
    assert calls == [f"start {name}" for name in order] + [f"end {name}" for name in order]


def test_a_global_callback_sees_all_threads_a_local_one_its_own() -> None:
    everywhere: list[str] = []
    here: list[str] = []
    opscope.add_global_callback(lambda fn: everywhere.append(fn.name))
    opscope.add_thread_local_callback(lambda fn: here.append(fn.name))
    in_thread(lambda: open_range("there"))
    open_range("here")
    assert everywhere == ["there", "here"]
    assert here == ["here"]


def test_no_scopes_means_all_and_some_mean_only_those() -> None:
    everything: list[RecordScope] = []
    some: list[RecordScope] = []
    wanted = [RecordScope.FUNCTION, RecordScope.BUILD_FEATURE]
    opscope.add_global_callback(lambda fn: everything.append(fn.scope))
    opscope.add_global_callback(lambda fn: some.append(fn.scope), scopes=wanted)
    for scope in RecordScope:
        open_range(scope=scope)
    assert everything == list(RecordScope)
    assert some == wanted


@pytest.mark.parametrize("context", [None, 0, "text", [], object()])
def test_the_end_gets_the_result_of_its_start(context: object) -> None:
    got: list[object] = []
    opscope.add_global_callback(lambda fn: context, lambda fn, ctx: got.append(ctx))
    open_range()
    assert len(got) == 1
    assert got[0] is context


def test_contexts_of_nested_ranges_and_many_callbacks_do_not_mix() -> None:
    wrong: list[object] = []

    def add(number: int) -> None:
        def end(fn: opscope.RecordFunction, context: tuple[int, str]) -> None:
            if context != (number, fn.name):
                wrong.append((context, number, fn.name))

        opscope.add_global_callback(lambda fn: (number, fn.name), end)

    for number in range(5):
        add(number)
    with opscope.record_function("outer"):
        open_range("inner")
    assert wrong == []


def test_a_callback_may_lack_start_or_end_or_both() -> None:
    calls: list[object] = []
    opscope.add_global_callback()
    opscope.add_global_callback(lambda fn: calls.append("start"))
    opscope.add_global_callback(end=lambda fn, context: calls.append(context))
    open_range()
    assert calls == ["start", None]


def test_has_callbacks_tells_whether_a_range_here_could_be_seen() -> None:
    handle = opscope.add_thread_local_callback()
    elsewhere: list[bool] = []
    in_thread(lambda: elsewhere.append(opscope.has_callbacks()))
    assert opscope.has_callbacks()
    assert elsewhere == [False]
    opscope.disable_callback(handle)
    assert not opscope.has_callbacks()
    opscope.enable_callback(handle)
    assert opscope.has_callbacks()
    with opscope.recording(False):
        assert not opscope.has_callbacks()
    opscope.clear_callbacks()
    assert not opscope.has_callbacks()


def test_clear_removes_global_callbacks_and_this_threads_local_ones() -> None:
    there: list[str] = []
    cleared = threading.Event()
    ready = threading.Event()

    def other() -> None:
        opscope.add_thread_local_callback(lambda fn: there.append(fn.name))
        ready.set()
        assert cleared.wait(30)
        open_range("there")

    here: list[str] = []
    opscope.add_global_callback(lambda fn: here.append(fn.name))
    opscope.add_thread_local_callback(lambda fn: here.append(fn.name))
    thread = threading.Thread(target=other)
    thread.start()
    assert ready.wait(30)
    opscope.clear_callbacks()
    cleared.set()
    thread.join()
    open_range("here")
    assert here == []
    assert there == ["there"]


# ---- bad input ------------------------------------------------------------------------------


@pytest.mark.parametrize("add", ADDERS)
@pytest.mark.parametrize("probability", [-0.1, 1.0000001, float("nan"), float("inf"), -1])
def test_a_probability_outside_0_to_1_is_an_error_that_names_it(
    add: Add, probability: float
) -> None:
    with pytest.raises(ValueError, match=rf"\[0, 1\], not {probability}"):
        add(sampling_prob=probability)
    assert not opscope.has_callbacks()


@pytest.mark.parametrize("add", ADDERS)
def test_a_callback_that_cannot_be_called_is_an_error(add: Add) -> None:
    with pytest.raises(TypeError, match="start must be callable or None, not 3"):
        add(3)
    with pytest.raises(TypeError, match="end must be callable or None, not 'x'"):
        add(None, "x")


@pytest.mark.parametrize("add", ADDERS)
def test_an_unknown_scope_is_an_error(add: Add) -> None:
    with pytest.raises(ValueError, match="99"):
        add(scopes=[99])


def test_the_65th_callback_is_an_error_and_the_64_go_on() -> None:
    calls: list[int] = []
    for _ in range(32):
        opscope.add_global_callback(lambda fn: calls.append(1))
        opscope.add_thread_local_callback(lambda fn: calls.append(1))
    with pytest.raises(opscope.CallbackError, match="at most 64"):
        opscope.add_thread_local_callback()
    open_range()
    assert len(calls) == 64
