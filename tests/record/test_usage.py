"""The API-usage log: once for each key, to early or late handlers, even if they raise."""

import logging
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import opscope
from opscope import (
    log_api_usage_metadata,
    log_api_usage_once,
    set_api_usage_handler,
    set_api_usage_metadata_handler,
)
from opscope._native import lib
from tests.record.programs import output_of, run_python


@pytest.fixture(autouse=True)
def no_handlers() -> Iterator[None]:
    yield
    set_api_usage_handler(None)
    set_api_usage_metadata_handler(None)


def test_a_key_is_said_once_in_a_process() -> None:
    keys: list[str] = []
    set_api_usage_handler(keys.append)
    keys.clear()
    for _ in range(3):
        log_api_usage_once("usage.once")
    assert keys == ["usage.once"]


def test_a_key_said_in_c_is_not_said_again_in_python() -> None:
    keys: list[str] = []
    lib.opscope_log_api_usage_once(b"usage.from_c")
    set_api_usage_handler(keys.append)
    log_api_usage_once("usage.from_c")
    assert keys.count("usage.from_c") == 1


def test_a_late_handler_gets_earlier_keys_in_order() -> None:
    log_api_usage_once("usage.first")
    log_api_usage_once("usage.größe")
    keys: list[str] = []
    set_api_usage_handler(keys.append)
    assert keys[-2:] == ["usage.first", "usage.größe"]
    log_api_usage_once("usage.third")
    assert keys[-1] == "usage.third"


def test_without_a_handler_nothing_is_called() -> None:
    keys: list[str] = []
    set_api_usage_handler(keys.append)
    set_api_usage_handler(None)
    keys.clear()
    log_api_usage_once("usage.unheard")
    assert keys == []


def test_threads_that_say_one_key_at_once_say_it_once() -> None:
    keys: list[str] = []
    set_api_usage_handler(keys.append)
    keys.clear()
    barrier = threading.Barrier(8)

    def say() -> None:
        barrier.wait(30)
        for number in range(20):
            log_api_usage_once(f"usage.race.{number}")

    threads = [threading.Thread(target=say) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(keys) == sorted(f"usage.race.{number}" for number in range(20))


def test_a_handler_that_raises_never_reaches_the_caller(caplog: pytest.LogCaptureFixture) -> None:
    def handler(*_: object) -> None:
        raise LookupError("from a handler")

    with caplog.at_level(logging.WARNING, "opscope"):
        set_api_usage_handler(handler)
        log_api_usage_once("usage.raising")
        set_api_usage_metadata_handler(handler)
        log_api_usage_metadata("usage", {"key": 1})
        lib.opscope_log_api_usage_metadata(b"usage", b"key", b"value")
    assert len(caplog.records) >= 3
    assert {record.name for record in caplog.records} == {"opscope"}


def test_a_keyboard_interrupt_in_a_handler_reaches_the_program() -> None:
    code = """
import opscope, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
opscope.set_api_usage_handler(lambda key: signal.raise_signal(signal.SIGINT))
try:
    opscope.log_api_usage_once("x")
    print("swallowed")
except KeyboardInterrupt: print("interrupted")
"""
    assert output_of(code) == ["interrupted"]


def test_metadata_goes_to_its_handler_every_time_as_text() -> None:
    told: list[tuple[str, dict[str, str]]] = []
    log_api_usage_metadata("unheard", {"a": 1})
    set_api_usage_metadata_handler(lambda context, mapping: told.append((context, mapping)))
    for _ in range(2):
        log_api_usage_metadata("save", {"a": 1, "b": None})
    lib.opscope_log_api_usage_metadata(b"from c", b"key", b"value")
    assert told == [("save", {"a": "1", "b": "None"})] * 2 + [("from c", {"key": "value"})]


def test_metadata_without_a_text_does_not_reach_the_caller(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken:
        def __str__(self) -> str:
            raise LookupError

    set_api_usage_metadata_handler(lambda context, mapping: None)
    log_api_usage_metadata("save", {"a": Broken()})
    assert len(caplog.records) == 1


@pytest.mark.parametrize("setter", [set_api_usage_handler, set_api_usage_metadata_handler])
def test_a_handler_that_cannot_be_called_is_an_error(setter: Any) -> None:
    with pytest.raises(TypeError, match="a handler must be callable or None, not 3"):
        setter(3)


def test_keys_go_to_standard_error_where_asked_for() -> None:
    code = "import opscope\nfor _ in range(2): opscope.log_api_usage_once('core.x')"
    for value, expected in (("1", "OPSCOPE_API_USAGE core.x\n"), ("0", "")):
        done = run_python(code, {**os.environ, "OPSCOPE_API_USAGE_STDERR": value})
        assert done.stderr == expected


def test_the_child_of_a_fork_does_not_say_its_parents_keys_again() -> None:
    code = """
import os, opscope
keys = []
opscope.set_api_usage_handler(keys.append)
opscope.log_api_usage_once("parent")
child = os.fork()
if child: os.waitpid(child, 0)
else:
    opscope.log_api_usage_once("parent")
    opscope.log_api_usage_once("child")
print(keys)
"""
    assert output_of(code) == ["['parent', 'child']", "['parent']"]


def test_callbacks_see_ranges_a_handler_opens(seen: list[str]) -> None:
    def handler(key: str) -> None:
        with opscope.record_function(key):
            pass

    set_api_usage_handler(handler)
    log_api_usage_once("usage.range")
    assert seen[-1] == "usage.range"
