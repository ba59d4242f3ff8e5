"""Exceptions in callbacks: contained, logged once per callback, counted; Ctrl-C passes."""

import logging
import subprocess
import sys

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


def test_the_report_names_the_range_in_which_it_raised(caplog: pytest.LogCaptureFixture) -> None:
    def start(fn: opscope.RecordFunction) -> None:
        if fn.name != "fine":
            fail()

    opscope.add_global_callback(start)
    opscope.add_global_callback(None, fail)
    with caplog.at_level(logging.WARNING, "opscope"):
        for name in ("fine", "größe", "later"):
            open_range(name)
    assert [record.getMessage().partition(";")[0] for record in caplog.records] == [
        "a callback raised an error in the range 'fine'",
        "a callback raised an error in the range 'größe'",
    ]


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
    """The interrupt may come between any two steps of the entry points, not only in the user's
    code. Nor in an import, where Python 3.14 itself may lose it: a first range imports all."""
    code = """
with opscope.record_function("x"): pass
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


# The signal strikes within the callback, at the step after the call.
TERMINATED = """
import functools, opscope, os, signal, sys
def terminate(signum, frame): raise {error}
class Handler:
    def method(self, signum, frame): terminate(signum, frame)
    def __call__(self, *args): self.method(*args)
def once(signum, _):
    signal.signal(signum, signal.SIG_DFL)
    terminate(signum, None)
def partial(one, two, *rest): terminate(0, None)
signal.signal(signal.SIGTERM, {handler})
def strike(*_):
    os.kill(os.getpid(), signal.SIGTERM)
    for _ in range(1000): pass
opscope.add_global_callback({which}=strike)
try:
    for _ in range(3):
        with opscope.record_function("x"): pass
    print("swallowed")
except {kind} as error:
    print(type(error).__name__, error, opscope.callback_errors())
"""


@pytest.mark.parametrize("which", ["start", "end"])
@pytest.mark.parametrize("error", ["SystemExit(3)", "TimeoutError('late')"])
@pytest.mark.parametrize(
    "handler",
    ["terminate", "Handler()", "Handler().method", "once", "functools.partial(partial, 1)"],
)
def test_a_signal_handlers_exception_inside_a_callback_reaches_the_program(
    which: str, error: str, handler: str
) -> None:
    kind = error.partition("(")[0]
    code = TERMINATED.format(which=which, error=error, handler=handler, kind=kind)
    text = "3" if kind == "SystemExit" else "late"
    assert output_of(code) == [f"{kind} {text} 0"]


def test_a_termination_outside_of_any_try_is_not_lost() -> None:
    """The exception has no traceback of its own yet when cffi reports it."""
    code = """
import opscope, signal, sys
from opscope.record import callbacks
def terminate(signum, frame): sys.exit(7)
signal.signal(signal.SIGTERM, terminate)
def describe(fn):
    signal.raise_signal(signal.SIGTERM)
callbacks.RecordFunction = describe
opscope.add_global_callback(lambda fn: None)
try:
    with opscope.record_function("x"): pass
    print("lost")
except SystemExit as error:
    print(error.code)
"""
    assert output_of(code) == ["7"]


def test_none_of_twenty_terminations_is_lost() -> None:
    """Sent by another process, at any moment of a range."""
    code = """
import opscope, signal, sys
def terminate(signum, frame): sys.exit(7)
signal.signal(signal.SIGTERM, terminate)
def work(*_):
    for _ in range(2000): pass
opscope.add_global_callback(work, work)
print("ready", flush=True)
while True:
    with opscope.record_function("x"): pass
"""
    lost = 0
    for _ in range(20):
        program = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        assert program.stdout is not None
        with program:
            assert program.stdout.readline() == b"ready\n"
            program.terminate()
            try:
                assert program.wait(timeout=30) == 7
            except subprocess.TimeoutExpired:
                program.kill()
                lost += 1
    assert lost == 0


def test_a_callbacks_own_exception_is_contained_with_any_handlers() -> None:
    code = """
import logging, opscope, signal, sys
logging.disable()
signal.signal(signal.SIGTERM, lambda signum, frame: sys.exit(1))
def leave(*_): sys.exit(2)
opscope.add_global_callback(leave, leave)
with opscope.record_function("x"): pass
print(opscope.callback_errors())
"""
    assert output_of(code) == ["2"]
