"""`import opscope`: its names, their docstrings and the examples in them."""

import ast
import doctest
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import opscope

RECORD = Path(__file__).parent.parent / "agent" / "opscope" / "record"
MODULES = sorted(f"opscope.record.{path.stem}" for path in RECORD.glob("[!_]*.py"))


def test_the_names_for_type_checkers_are_the_public_names() -> None:
    tree = ast.parse(Path(inspect.getfile(opscope)).read_text())
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("opscope")
        for alias in node.names
    }
    assert imported == set(opscope.__all__)


@pytest.mark.parametrize("name", opscope.__all__)
def test_every_public_name_is_there_and_says_what_it_is(name: str) -> None:
    value = getattr(opscope, name)
    if callable(value):
        assert inspect.getdoc(value)


def test_an_unknown_name_is_an_ordinary_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'opscope' has no attribute 'nothing'"):
        _ = opscope.nothing


def test_examples_in_docstrings_are_true() -> None:
    attempted = 0
    for name in MODULES:
        module = importlib.import_module(name)
        result = doctest.testmod(module, globs={**vars(module), "opscope": opscope})
        assert result.failed == 0, name
        attempted += result.attempted
    assert attempted >= 10


FORKS_DURING_AN_IMPORT = """
import importlib, os, sys, threading
import opscope

opscope._LOADING_LIMIT_S = 200  # an import takes long on a crowded machine
is_importing, is_forking = threading.Event(), threading.Event()
load = importlib.import_module

def import_module(name):
    is_importing.set()
    is_forking.wait()
    return load(name)

importlib.import_module = import_module
thread = threading.Thread(target=lambda: opscope.record_function)
thread.start()
is_importing.wait()
os.register_at_fork(before=is_forking.set)  # runs before opscope's, which was registered first
child = os.fork()
if child == 0:
    os._exit("record_function" not in vars(opscope))
thread.join()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_fork_waits_for_a_name_that_another_thread_is_importing() -> None:
    done = subprocess.run([sys.executable, "-c", FORKS_DURING_AN_IMPORT], timeout=300, check=False)
    assert done.returncode == 0


FORKS_FOR_AN_IMPORT_THAT_WAITS_FOR_IT = """
import importlib, os, sys, threading
import opscope

opscope._LOADING_LIMIT_S = 0.05
is_importing, has_forked = threading.Event(), threading.Event()
load = importlib.import_module

def import_module(name):
    is_importing.set()
    has_forked.wait()
    return load(name)

importlib.import_module = import_module
thread = threading.Thread(target=lambda: opscope.record_function)
thread.start()
is_importing.wait()
child = os.fork()
if child == 0:
    os._exit(0)
has_forked.set()
thread.join()
opscope.fork  # the lock is whole
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_fork_does_not_wait_for_ever() -> None:
    program = FORKS_FOR_AN_IMPORT_THAT_WAITS_FOR_IT
    done = subprocess.run([sys.executable, "-c", program], timeout=300, check=False)
    assert done.returncode == 0
