"""Labels: nesting, and propagation to threads, tasks and programs."""

import asyncio
import contextvars
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import opscope
from opscope import child_environment, debug_info, get_debug_info, propagate
from tests.record.programs import output_of

PRINT_LABELS = "import opscope; print(sorted(opscope.get_debug_info().items()))"
SHELL = 'echo "$OPSCOPE_DEBUG_INFO"'


@pytest.fixture(autouse=True)
def no_labels() -> Iterator[None]:
    assert get_debug_info() == {}
    yield
    assert get_debug_info() == {}


# ---- nesting --------------------------------------------------------------------------------


def test_a_label_is_in_force_within_its_block_only() -> None:
    with debug_info(model_id="resnet50"):
        assert get_debug_info() == {"model_id": "resnet50"}
        assert get_debug_info("model_id") == "resnet50"
        assert get_debug_info("other") is None
    assert get_debug_info("model_id") is None


def test_an_inner_label_shadows_its_key_and_no_other() -> None:
    with debug_info(a=1, b=2):
        with debug_info(b=3, c=4):
            assert get_debug_info() == {"a": "1", "b": "3", "c": "4"}
        assert get_debug_info() == {"a": "1", "b": "2"}


def test_none_masks_the_label_of_its_key_within_the_block() -> None:
    with debug_info(a=1, b=2):
        with debug_info(a=None):
            assert get_debug_info("a") is None
            assert get_debug_info() == {"b": "2"}
            with debug_info(a=3):
                assert get_debug_info() == {"a": "3", "b": "2"}
            assert get_debug_info() == {"b": "2"}
        assert get_debug_info() == {"a": "1", "b": "2"}
    with debug_info(a=None):
        assert get_debug_info() == {}


def test_a_masked_label_is_masked_wherever_the_labels_go() -> None:
    with debug_info(a=1, b=2), debug_info(a=None):
        assert opscope.wait(opscope.fork(get_debug_info)) == {"b": "2"}
        carried = propagate(get_debug_info)
    with debug_info(a=4):
        assert carried() == {"b": "2"}


def test_a_masked_label_is_not_handed_to_programs() -> None:
    inner = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {PRINT_LABELS!r}])"
    for masks in ("a=None", "a=None, b=None"):
        outer = (
            "import subprocess, sys, opscope\n"
            f"with opscope.debug_info({masks}):\n"
            f"    subprocess.run([sys.executable, '-c', {inner!r}])\n"
        )
        with debug_info(a=1, b=2):
            assert output_of(outer) == ["[('b', '2')]" if "b" not in masks else "[]"]
    with debug_info(a=1, b=2), debug_info(a=None):
        assert output_of(PRINT_LABELS) == ["[('b', '2')]"]
        environment = child_environment({"A": "1", "OPSCOPE_DEBUG_INFO": "a=0"})
        assert environment == {"A": "1", "OPSCOPE_DEBUG_INFO": "b=2"}


def test_labels_are_restored_when_the_block_raises() -> None:
    with pytest.raises(KeyError), debug_info(a=1):
        raise KeyError


def test_an_instance_may_be_entered_again_while_in_force() -> None:
    labels = debug_info(a=1)
    with labels:
        with labels:
            pass
        assert get_debug_info() == {"a": "1"}


def test_no_labels_are_fine() -> None:
    with debug_info():
        assert get_debug_info() == {}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("", ""),
        (7, "7"),
        (True, "True"),
        (2.5, "2.5"),
        ("größe", "größe"),
        ("a\nb=c", "a\nb=c"),
        ("a\0b", "ab"),
        ("\ud800", "?"),
        ("x" * 65_535, "x" * 65_535),
    ],
)
def test_values_are_kept_as_text(value: object, text: str) -> None:
    with debug_info(key=value):
        assert get_debug_info() == {"key": text}


@pytest.mark.parametrize("key", ["service.name", "a b", "größe", "with=equals", "class", "1"])
def test_keys_need_not_be_identifiers(key: str) -> None:
    with debug_info(**{key: "value"}):
        assert get_debug_info(key) == "value"
        assert get_debug_info() == {key: "value"}


@pytest.mark.parametrize("labels", [{"": "x"}, {"\0": "x"}])
def test_a_label_without_a_name_is_an_error(labels: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="must have a name"):
        debug_info(**labels)


def test_a_value_that_has_no_text_is_its_own_error_and_changes_nothing() -> None:
    class Broken:
        def __str__(self) -> str:
            raise LookupError("no text")

    with pytest.raises(LookupError, match="no text"):
        debug_info(a=1, b=Broken())


def test_deep_nesting_is_restored_step_by_step() -> None:
    def nest(depth: int) -> None:
        if depth:
            with debug_info(depth=depth):
                nest(depth - 1)
                assert get_debug_info("depth") == str(depth)

    nest(200)


# ---- out of order ---------------------------------------------------------------------------


def labelled(**labels: object) -> Iterator[dict[str, str]]:
    with debug_info(**labels):
        yield get_debug_info()


def test_an_outer_label_that_ends_first_stays_until_the_inner_one_ends() -> None:
    outer, inner = labelled(a=1), labelled(b=2)
    next(outer)
    next(inner)
    next(outer, None)
    assert get_debug_info() == {"a": "1", "b": "2"}
    next(inner, None)
    assert get_debug_info() == {}


@pytest.mark.parametrize("step", [1, 3, 7])
def test_labels_of_generators_ended_in_any_order_are_all_gone(step: int) -> None:
    generators = [labelled(**{f"key{number % 5}": number}) for number in range(50)]
    for generator in generators:
        next(generator)
    for number in range(len(generators)):
        next(generators[number * step % len(generators)], None)
    assert get_debug_info() == {}


def test_labels_of_interleaved_coroutines_are_gone_when_all_have_ended() -> None:
    async def request(number: int) -> None:
        with debug_info(request=number):
            for _ in range(number % 4):
                await asyncio.sleep(0)

    async def serve() -> None:
        await asyncio.gather(*(request(number) for number in range(20)))
        assert get_debug_info() == {}

    asyncio.run(serve())


def test_a_block_left_on_another_thread_changes_nothing_there() -> None:
    generator = labelled(a=1)
    next(generator)
    there: list[dict[str, str]] = []

    def leave() -> None:
        with debug_info(b=2):
            next(generator, None)
            there.append(get_debug_info())
        there.append(get_debug_info())

    thread = threading.Thread(target=leave)
    thread.start()
    thread.join()
    assert there == [{"b": "2"}, {}]
    with debug_info(c=3):
        assert get_debug_info() == {"c": "3"}


def test_a_block_entered_in_a_propagated_function_and_left_outside_changes_nothing() -> None:
    generator = labelled(inside=1)
    with debug_info(captured=1):
        run = propagate(lambda: next(generator))
    with debug_info(outside=1):
        assert run() == {"captured": "1", "inside": "1"}
        next(generator, None)
        assert get_debug_info() == {"outside": "1"}


# ---- threads, tasks, forks ------------------------------------------------------------------


def test_raw_threads_do_not_inherit_labels() -> None:
    there: list[dict[str, str]] = []
    with debug_info(a=1):
        thread = threading.Thread(target=lambda: there.append(get_debug_info()))
        thread.start()
        thread.join()
    assert there == [{}]


def test_a_task_has_the_labels_of_its_forker_at_the_fork() -> None:
    with debug_info(a=1):
        future = opscope.fork(get_debug_info)
    with debug_info(b=2):
        assert opscope.wait(future) == {"a": "1"}
        assert get_debug_info() == {"b": "2"}


def test_labels_of_a_task_end_with_it() -> None:
    def task() -> None:
        debug_info(left=1).__enter__()

    with debug_info(a=1):
        opscope.wait(opscope.fork(task))
        assert get_debug_info() == {"a": "1"}
        assert opscope.wait(opscope.fork(get_debug_info)) == {"a": "1"}


def test_propagate_carries_labels_local_callbacks_and_the_switch_into_executors() -> None:
    seen: list[tuple[str, dict[str, str]]] = []

    def work(name: str) -> dict[str, str]:
        with opscope.record_function(name):
            return get_debug_info()

    with ThreadPoolExecutor(1) as pool:
        opscope.add_thread_local_callback(lambda fn: seen.append((fn.name, fn.debug_info)))
        with debug_info(a=1):
            carried = propagate(work)
            with opscope.recording(False):
                silent = propagate(work)
        assert pool.submit(carried, "carried").result() == {"a": "1"}
        assert pool.submit(silent, "silent").result() == {"a": "1"}
        assert pool.submit(work, "bare").result() == {}
    assert seen == [("carried", {"a": "1"})]


def test_a_propagated_function_keeps_its_name_arguments_result_and_exceptions() -> None:
    def divide(a: int, *, by: int) -> float:
        """The quotient."""
        return a / by

    run = propagate(divide)
    assert (run.__name__, run.__doc__) == ("divide", "The quotient.")
    assert run(3, by=2) == 1.5
    with debug_info(outside=1):
        with pytest.raises(ZeroDivisionError):
            run(1, by=0)
        assert get_debug_info() == {"outside": "1"}


def test_a_propagated_function_may_run_on_many_threads_at_once() -> None:
    barrier = threading.Barrier(4)

    def work() -> str | None:
        barrier.wait(30)
        with debug_info(b=threading.get_ident()):
            return get_debug_info("a")

    with debug_info(a=1):
        run = propagate(work)
    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(run) for _ in range(4)]
        assert [future.result() for future in futures] == ["1"] * 4


def test_a_propagated_function_releases_its_captured_state() -> None:
    class Start:
        def __call__(self, fn: opscope.RecordFunction) -> None:
            pass

    start = Start()
    watched = weakref.ref(start)
    handle = opscope.add_thread_local_callback(start)
    run = propagate(get_debug_info)
    opscope.remove_callback(handle)
    del start
    assert watched() is not None
    run()
    del run
    assert watched() is None


def test_contextvars_are_not_labels() -> None:
    with debug_info(a=1):
        assert contextvars.Context().run(get_debug_info) == {"a": "1"}


def test_the_child_of_a_fork_has_the_labels_of_the_forking_thread() -> None:
    code = """
import os, opscope
with opscope.debug_info(a=1):
    child = os.fork()
    if child == 0:
        with opscope.debug_info(b=2): print(opscope.get_debug_info(), flush=True)
        print(opscope.get_debug_info(), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
print(opscope.get_debug_info())
"""
    assert output_of(code) == ["{'b': '2', 'a': '1'}", "{'a': '1'}", "{}"]


# ---- programs -------------------------------------------------------------------------------


def test_a_program_started_within_the_block_inherits_the_labels() -> None:
    with debug_info(model_id="größe", n=1), debug_info(**{"service.name": "a=b"}):
        assert output_of(PRINT_LABELS) == [
            "[('model_id', 'größe'), ('n', '1'), ('service.name', 'a=b')]"
        ]
    assert output_of(PRINT_LABELS) == ["[]"]


def test_labels_are_inherited_over_several_programs_and_may_be_shadowed() -> None:
    inner = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {PRINT_LABELS!r}])"
    outer = (
        "import subprocess, sys, opscope\n"
        "with opscope.debug_info(b=20, c=30):\n"
        f"    subprocess.run([sys.executable, '-c', {inner!r}])\n"
    )
    with debug_info(a=1, b=2):
        assert output_of(outer) == ["[('a', '1'), ('b', '20'), ('c', '30')]"]


def test_threads_of_a_program_have_the_inherited_labels_from_their_start() -> None:
    code = (
        "import threading, opscope\n"
        "thread = threading.Thread(target=lambda: print(opscope.get_debug_info()))\n"
        "thread.start(); thread.join()\n"
    )
    with debug_info(a=1):
        assert output_of(code) == ["{'a': '1'}"]


@pytest.mark.parametrize(
    "environment",
    [None, {}, {"PATH": os.defpath}, {b"PATH": os.defpath.encode()}],
    ids=["none", "empty", "given", "bytes"],
)
def test_every_way_to_start_a_program_by_subprocess_hands_labels_on(environment: Any) -> None:
    shell = ["/bin/sh", "-c", SHELL]
    with debug_info(a=1):
        before = dict(os.environ)
        run = subprocess.run(shell, env=environment, stdout=subprocess.PIPE, check=True)
        assert run.stdout == b"a=1\n"
        assert subprocess.check_output(shell, env=environment) == b"a=1\n"
        # args, bufsize, executable, stdin, stdout, stderr, preexec_fn, close_fds, shell, cwd, env
        popen = subprocess.Popen(
            shell, -1, None, None, subprocess.PIPE, None, None, True, False, None, environment
        )
        assert popen.communicate()[0] == b"a=1\n"
        assert dict(os.environ) == before


def test_an_environment_given_to_popen_is_neither_changed_nor_lost() -> None:
    environment = {"GIVEN": "1"}
    with debug_info(a=1):
        out = subprocess.check_output(
            ["/bin/sh", "-c", 'echo "$GIVEN" "$HOME"' + "; " + SHELL], env=environment, text=True
        )
    assert out == "1 \na=1\n"
    assert environment == {"GIVEN": "1"}


def test_popen_still_refuses_invalid_environments() -> None:
    wrong: Any = [("A", "1")]
    with debug_info(a=1), pytest.raises(AttributeError, match="'list' object has no"):
        subprocess.Popen(["/bin/true"], env=wrong)


def test_child_environment_is_for_other_ways_to_start_a_program() -> None:
    assert child_environment({"A": "1"}) == {"A": "1"}
    with debug_info(a=1):
        assert child_environment({"A": "1"}) == {"A": "1", "OPSCOPE_DEBUG_INFO": "a=1"}
        code = "import opscope, sys; sys.exit(int(opscope.get_debug_info('a')))"
        argv = [sys.executable, "-c", code]
        child = os.posix_spawn(sys.executable, argv, child_environment())
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


def test_labels_an_environment_cannot_hold_are_left_out() -> None:
    with debug_info(**{"with=equals": 1, "with\nbreak": 2, "good": "two\nlines"}):
        assert child_environment({}) == {"OPSCOPE_DEBUG_INFO": "good=two lines"}


def test_labels_never_fill_the_room_a_program_needs_to_start() -> None:
    with debug_info(small=1, **{f"big{number}": "x" * 4_000 for number in range(100)}):
        assert len(child_environment({})["OPSCOPE_DEBUG_INFO"]) < 8192
        subprocess.run(["/bin/true"], check=True)


def test_labels_go_through_whatever_the_locale_is() -> None:
    code = r"""
import os, subprocess, sys, opscope
with opscope.debug_info(model_id="\u6a21\u578b"):
    out = subprocess.check_output(["/bin/sh", "-c", 'printf %s "$OPSCOPE_DEBUG_INFO"'])
print(out)
"""
    environment = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    assert output_of(code, {**os.environ, **environment}) == [str("model_id=\u6a21\u578b".encode())]


@pytest.mark.parametrize("text", ["", "=", "novalue", "=x", "\n\n", "a=1\n=\nb", "x" * 70_000])
def test_a_strange_inherited_environment_does_no_harm(text: str) -> None:
    lines = output_of(PRINT_LABELS, {**os.environ, "OPSCOPE_DEBUG_INFO": text})
    assert lines == ["[('a', '1')]" if text.startswith("a=1") else "[]"]
