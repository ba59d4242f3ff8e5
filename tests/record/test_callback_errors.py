"""What a callback raises: contained, logged once for each callback, counted; Ctrl-C goes on."""

import logging

import pytest

import opscope
from tests.record.programs import output_of, run_python


def fail(*_: object) -> None:
    raise LookupError("from a callback")


def open_range(name: str = "x") -> None:
    with opscope.record_function(name):
        pass


def test_neither_the_program_nor_other_callbacks_notice(
    seen: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    opscope.add_global_callback(fail, fail)
    later: list[str] = []
    opscope.add_global_callback(lambda fn: later.append(fn.name))
    open_range()
    assert seen == later == ["x"]


@pytest.mark.parametrize("error", [ValueError, SystemExit, GeneratorExit, BaseException])
def test_any_exception_is_contained(
    error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    def start(fn: opscope.RecordFunction) -> None:
        raise error

    opscope.add_global_callback(start)
    open_range()


def test_each_callback_is_reported_once_and_every_error_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    before = opscope.callback_errors()
    opscope.add_global_callback(fail)
    opscope.add_global_callback(None, fail)
    with caplog.at_level(logging.WARNING, "opscope"):
        for _ in range(10):
            open_range()
    assert opscope.callback_errors() - before == 20
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    for record in caplog.records:
        assert record.name == "opscope"
        assert record.exc_info is not None
        assert isinstance(record.exc_info[1], LookupError)


def test_after_a_start_that_raised_the_end_runs_with_no_context(
    caplog: pytest.LogCaptureFixture,
) -> None:
    contexts: list[object] = []
    opscope.add_global_callback(fail, lambda fn, context: contexts.append(context))
    open_range()
    assert contexts == [None]


def test_a_report_says_what_raised_and_where() -> None:
    done = run_python(
        "import opscope\n"
        "def broken(fn): raise LookupError('from a callback')\n"
        "opscope.add_global_callback(broken)\n"
        "for _ in range(3):\n"
        "    with opscope.record_function('x'): print('ran')\n"
    )
    assert done.returncode == 0
    assert done.stdout == "ran\n" * 3
    assert done.stderr.count("LookupError: from a callback") == 1
    assert "in broken" in done.stderr


# A test run in the background may have been started with SIGINT ignored.
CTRL_C = """
import opscope, signal, threading
signal.signal(signal.SIGINT, signal.default_int_handler)
"""


@pytest.mark.parametrize("which", ["start", "end"])
def test_a_keyboard_interrupt_inside_a_callback_reaches_the_program(which: str) -> None:
    code = f"""
def interrupt(*_): signal.raise_signal(signal.SIGINT)
opscope.add_global_callback({which}=interrupt)
try:
    with opscope.record_function("x"): pass
    threading.Event().wait(30)
except KeyboardInterrupt: print("interrupted")
"""
    assert output_of(CTRL_C + code) == ["interrupted"]


def test_a_keyboard_interrupt_inside_a_callback_on_a_thread_reaches_the_main_thread() -> None:
    code = """
def interrupt(fn): raise KeyboardInterrupt
opscope.add_global_callback(interrupt)
def work():
    with opscope.record_function("x"): pass
try:
    threading.Thread(target=work).start()
    for _ in range(3_000): threading.Event().wait(0.01)
except KeyboardInterrupt: print("interrupted")
"""
    assert output_of(CTRL_C + code) == ["interrupted"]


def test_an_interrupt_at_any_moment_of_a_range_is_never_lost() -> None:
    """It may strike between any two steps of the entry points, not only in the user's code."""
    code = """
signal.signal(signal.SIGALRM, signal.default_int_handler)
opscope.add_global_callback(lambda fn: 1, lambda fn, context: None)
caught = 0
for turn in range(150):
    try:
        signal.setitimer(signal.ITIMER_REAL, 1e-5 + turn % 50 * 1e-6)
        for _ in range(100_000):
            with opscope.record_function("x"): pass
    except KeyboardInterrupt: caught += 1
print(caught)
"""
    assert output_of(CTRL_C + code) == ["150"]
