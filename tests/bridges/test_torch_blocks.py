"""Outer ranges are followed without a callback of PyTorch's between windows, and the operators that
begin and end them stay what they were to everybody else."""

from pathlib import Path

import pytest

from .conftest import windows
from .torch_observed import (
    Counts,
    counts,
    fork_that_exports,
    observed_fork,
    observed_fork_that_exports,
    unobserved_fork,
)

RARE = windows(1.0, 3_600_000.0)
"""No window opens while a program runs."""

HAS_CALLBACKS = """
import ctypes, os, torch
library = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so"))
def has_callbacks():
    return bool(library[b"_ZN2at18hasGlobalCallbacksEv".decode()]() & 1)
"""


OUTER = """
linear = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(linear.parameters(), lr=0.1)
for _ in range(50):
    with rf("my step"):
        optimizer.zero_grad()
        linear(torch.ones(2, 8)).sum().backward()
        optimizer.step()
print(has_callbacks())
"""

SLOW = """
import time
from torch.utils._python_dispatch import TorchDispatchMode
class Slow(TorchDispatchMode):
    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        is_end = "exit" in str(operator)
        time.sleep(0.3 if is_end else 0.0)
        result = operator(*args, **(kwargs or {}))
        time.sleep(0.0 if is_end else 0.2)
        return result
with Slow(), rf("slow"):
    pass
"""

CALLBACK = """
import opscope
names = []
def start(range): names.append(range.name)
for turn in range(3):
    with rf(f"turn {turn}"):
        if turn == 1:
            user = opscope.RecordScope.USER_SCOPE
            handle = opscope.add_global_callback(start, None, scopes=[user])
        with rf("inner"):
            pass
        if turn == 1:
            opscope.remove_callback(handle)
print(names, has_callbacks())
"""

COUNTED = """
import contextlib
from torch.utils._python_dispatch import TorchDispatchMode
rf = torch.profiler.record_function
enter = torch.ops.profiler._record_function_enter_new
leave = torch.ops.profiler._record_function_exit

def nest(depth):
    with rf("200 deep under a default device"):
        if depth: nest(depth - 1)

torch.set_default_device("cpu")
for _ in range(20):
    with rf("under a default device"): pass
nest(199)
torch.set_default_device(None)

class Passing(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))
with Passing(), Passing(), Passing():
    for _ in range(20):
        with rf("under three modes"): pass

class WithBlocks(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        with rf("of the mode"): pass
        return result
with WithBlocks():
    for _ in range(20):
        with rf("under a mode with blocks of its own"): pass

class Answering(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return 7
with Answering():
    for _ in range(20): torch.ops.profiler._record_function_enter_new("answered by a mode")

from torch.utils.flop_counter import FlopCounterMode
class Again(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))
class AgainWithBlocks(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        with rf("of the dispatch mode"): return function(*args, **(kwargs or {}))
for name, modes in (
    ("under a dispatch mode", (Again(),)),
    ("under two dispatch modes", (Again(), Again())),
    ("under two kinds of modes", (Passing(), Again(), Passing())),
    ("while operations are counted", (FlopCounterMode(display=False),)),
    ("under a dispatch mode with blocks of its own", (AgainWithBlocks(),)),
):
    with contextlib.ExitStack() as all_modes:
        for mode in modes: all_modes.enter_context(mode)
        for _ in range(20):
            with rf(name): torch.ones(2)

with rf("around futures"):
    for _ in range(300):
        with rf("futures") as block:
            future = torch.futures.Future()
            done = block._call_end_callbacks_on_future(future)
        future.set_result(torch.zeros(1))
        done.wait()
        del block

with rf("around dropped blocks"):
    for _ in range(300):
        block = enter("dropped blocks")
        del block

argument = leave._RecordFunction._schema.arguments[0].name
for _ in range(20):
    leave._RecordFunction(**{argument: enter(name="named arguments")})
    leave(enter.default("an overload by its name"))
"""
"""Each case in turn, with blocks that have its name."""

EACH_ONCE = {
    "under a default device": 20,
    "200 deep under a default device": 200,
    "under three modes": 20,
    "under a mode with blocks of its own": 20,
    "of the mode": 40,
    "under a dispatch mode": 20,
    "under two dispatch modes": 20,
    "under two kinds of modes": 20,
    "while operations are counted": 20,
    "under a dispatch mode with blocks of its own": 20,
    "of the dispatch mode": 60,
    "around futures": 1,
    "futures": 300,
    "around dropped blocks": 1,
    "dropped blocks": 300,
    "named arguments": 20,
    "an overload by its name": 20,
}


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], Counts]:
    """The lines and counts of one program with all cases that drop nothing: importing PyTorch takes
    most of the time."""
    place = tmp_path_factory.mktemp("exact")
    program = (
        f"{HAS_CALLBACKS}rf = torch.profiler.record_function\n{OUTER}{SLOW}{CALLBACK}{COUNTED}"
    )
    printed = observed_fork(place, program, **RARE, OPSCOPE_MAX_OVERHEAD="off")
    return printed.splitlines(), counts(place / "segments")


def test_between_windows_pytorch_has_no_callback_and_outer_ranges_are_exact(
    exact: tuple[list[str], Counts],
) -> None:
    lines, found = exact
    assert lines[0] == "False"
    assert {
        name: count for name, count in found.calls.items() if "SGD" in name or "my" in name
    } == {
        "my step": 50,
        "Optimizer.step#SGD.step": 50,
        "Optimizer.zero_grad#SGD.zero_grad": 50,
    }


def test_a_block_lasts_as_long_as_pytorchs_range_with_a_part_of_its_own_operators(
    exact: tuple[list[str], Counts],
) -> None:
    """PyTorch begins the range within the one operator, and ends it at the end of the other."""
    # Half of the first operator's time, because nobody knows when in it PyTorch's range began.
    assert exact[1].self_s["slow"] >= 0.4


def test_a_callback_for_the_same_ranges_gets_each_once(exact: tuple[list[str], Counts]) -> None:
    lines, found = exact
    assert lines[1:] == ["['inner'] False"]
    expected = {"inner": 3, "turn 0": 1, "turn 1": 1, "turn 2": 1}
    assert expected.items() <= found.calls.items()


def test_each_block_counts_once(exact: tuple[list[str], Counts]) -> None:
    _, found = exact
    of_others = ("my step", "slow", "inner", "turn", "Optimizer")
    assert {
        name: count
        for name, count in found.calls.items()
        if ":" not in name and not name.startswith(of_others)
    } == EACH_ONCE
    assert found.snapshot.health.dropped == 0


def test_with_every_range_recorded_each_block_counts_once_too(tmp_path: Path) -> None:
    """PyTorch ends the range of the mode's call, in which the block's range has begun, long before
    that of the block."""
    sleeps = """
import time
with Again(), rf("sleeps"): time.sleep(0.05)
"""
    program = f"import torch{COUNTED}{sleeps}"
    observed_fork(tmp_path, program, OPSCOPE_SAMPLING="1", OPSCOPE_MAX_OVERHEAD="off")
    found = counts(tmp_path / "segments")
    assert {name: found.calls[name] for name in EACH_ONCE} == EACH_ONCE
    assert found.self_s["sleeps"] >= 0.05
    assert found.snapshot.health.dropped == 0


def test_a_block_left_on_another_thread_is_dropped_once(tmp_path: Path) -> None:
    program = """
import threading, torch
for _ in range(3):
    block = torch.profiler.record_function("left elsewhere")
    block.__enter__()
    thread = threading.Thread(target=block.__exit__, args=(None, None, None))
    thread.start(); thread.join()
    with torch.profiler.record_function("after it"):
        pass
"""
    assert observed_fork(tmp_path, program, **RARE) == ""
    found = counts(tmp_path / "segments")
    assert found.calls["left elsewhere"] == 0
    assert found.calls["after it"] == 3
    assert found.snapshot.health.dropped == 3


def test_a_block_that_ends_around_a_later_one_is_counted_or_dropped(tmp_path: Path) -> None:
    """Each call replaces the block of the call around it, which PyTorch then ends."""
    program = """
import torch
@torch.profiler.record_function("b")
def factorial(n): return 1 if n == 0 else n * factorial(n - 1)
with torch.profiler.record_function("around"):
    for _ in range(40): factorial(9)
"""
    assert observed_fork(tmp_path, program, **RARE, OPSCOPE_MAX_OVERHEAD="off") == ""
    found = counts(tmp_path / "segments")
    assert found.calls["around"] == 1
    assert found.calls["b"] + found.snapshot.health.dropped == 400


def test_pytorchs_own_block_without_an_end_is_dropped_once(tmp_path: Path) -> None:
    """An optimizer's block is not watched, as PyTorch always ends it. The next block may have the
    address of one that was left, on the same thread or on another one."""
    program = """
import threading, torch
profiler = torch.ops.profiler
enter, leave = profiler._record_function_enter_new, profiler._record_function_exit
def left(): enter("Optimizer.step#left")
def work():
    with torch.profiler.record_function("around"):
        for _ in range(100):
            left()
            block = enter("after it"); leave(block); del block
            leave(enter("Optimizer.step#ended"))
work()
thread = threading.Thread(target=work); thread.start(); thread.join()
"""
    assert observed_fork(tmp_path, program, **RARE, OPSCOPE_MAX_OVERHEAD="off") == ""
    found = counts(tmp_path / "segments")
    of_blocks = ("around", "after it", "Optimizer.step#ended", "Optimizer.step#left")
    assert [found.calls[name] for name in of_blocks] == [2, 200, 200, 0]
    assert found.snapshot.health.dropped == 200


def test_of_many_blocks_without_an_end_the_newer_ones_are_watched(tmp_path: Path) -> None:
    """The list of open blocks does not grow: from 64 on, it notices which are gone."""
    program = """
import torch
with torch.profiler.record_function("around"):
    enter = torch.ops.profiler._record_function_enter_new
    blocks = [enter("Optimizer.step#left") for _ in range(100)]
    while blocks: blocks.pop()
"""
    assert observed_fork(tmp_path, program, **RARE, OPSCOPE_MAX_OVERHEAD="off") == ""
    found = counts(tmp_path / "segments")
    assert [found.calls[name] for name in ("around", "Optimizer.step#left")] == [1, 37]
    assert found.snapshot.health.dropped == 63


UNCHANGED = """
import copy, torch
def described():
    profiler = torch.ops.profiler
    enter, leave = profiler._record_function_enter_new, profiler._record_function_exit
    operators = [enter, leave, leave._RecordFunction]
    names = [torch.jit._builtins._find_builtin(operator._op) for operator in operators]
    ops = [o._op for o in operators]
    texts = [(repr(op), op.__name__, op.__module__, op.__class__) for op in ops]
    return names, [hash(o) for o in operators], texts, [hash(op) for op in ops]
def errors():
    for call in (lambda: torch.ops.profiler._record_function_enter_new(),
                 lambda: torch.ops.profiler._record_function_enter_new(5),
                 lambda: torch.ops.profiler._record_function_exit._RecordFunction(None)):
        try: call()
        except Exception as error: yield type(error), str(error)
originals = [torch.ops.profiler._record_function_enter_new._op]
before, errors_before = described(), list(errors())
import opscope; opscope.attach()
now = torch.ops.profiler._record_function_enter_new
print(described() == before, list(errors()) == errors_before)
print(now._op is originals[0], now._op == originals[0], copy.deepcopy(now) is now)
print(now in torch.fx.node._side_effectful_functions)
import weakref
print(copy.deepcopy(now._op) is now._op, copy.copy(now.op) is now.op)
print(weakref.ref(now.op)() is now.op)
opscope.detach()
print(described() == before, now._op is originals[0])
"""


def test_the_operators_keep_their_hash_text_errors_and_place_in_tables(tmp_path: Path) -> None:
    printed = unobserved_fork(tmp_path, UNCHANGED).splitlines()
    assert printed == ["True True", "False True True", "True", "True True", "True", "True True"]


PROGRAMS = """
import torch

print("TorchScript")
@torch.jit.script
def f(x):
    with torch.autograd.profiler.record_function("scripted"):
        return x + 1
print(f(torch.ones(1)))

print("torch.fx")
class Traced(torch.nn.Module):
    def forward(self, x):
        with torch.profiler.record_function("traced"):
            return x + 1
print(torch.fx.symbolic_trace(Traced())(torch.ones(1)))

print("torch.export")
class Exported(torch.nn.Module):
    def forward(self, x):
        with torch.profiler.record_function("exported"):
            return x + 1
print(torch.export.export(Exported(), (torch.ones(1),)).module()(torch.ones(1)))

print("a future")
with torch.profiler.record_function("future") as block:
    future = torch.futures.Future()
    done = block._call_end_callbacks_on_future(future)
    future.set_result(7)
print(done.wait())

print("a decorator, a generator and an exception")
@torch.profiler.record_function("decorated")
def f():
    raise ValueError("inside")
def numbers():
    with torch.profiler.record_function("generated"):
        yield 1
print(next(numbers()))
try: f()
except ValueError as error: print(error)

print("a name with code of its own")
class Name(str):
    def __hash__(self):
        print("asked for its hash")
        raise ValueError
with torch.profiler.record_function(Name("named")):
    pass
print("left")
"""


def test_a_program_with_blocks_prints_the_same(tmp_path: Path) -> None:
    bare = fork_that_exports(tmp_path, "import opscope\n" + PROGRAMS)
    assert bare.splitlines()[-4:] == ["1", "inside", "a name with code of its own", "left"]
    assert observed_fork_that_exports(tmp_path, PROGRAMS, **RARE) == bare
