"""Random functions do the same when they are scripted."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from opscope import tensor as ot
from opscope.tensor import jit
from tests.examples import few_or
from tests.tensor.jit.scripting.random_functions import Writer
from tests.tensor.jit.scripting.same import equal, outcome

HEAD = '''"""Random functions."""

from opscope import fork, tensor as ot, wait
from opscope.tensor import Tensor


def scale(t: Tensor, by: float) -> Tensor:
    return t * by


def count(a: int, b: int) -> int:
    while a < b:
        a += 3
        if a % 5 == 0:
            return a
    return a - b


'''
PER_FILE = few_or(12, 60)


def arguments(number: int) -> list[Any]:
    """Arguments of a call; those of each call take other branches."""
    ot.manual_seed(number)
    return [
        ot.randn((3,)),
        ot.randn((3,)),
        (3, -1, 7, 0)[number],
        (0.5, -2.0, 3.25, 0.0)[number],
        number % 2 == 0,
        ([1, 2, 3], [5], [4, -2, 9, 1], [])[number],
    ]


@pytest.mark.examples
@pytest.mark.parametrize("first", range(0, 6 * PER_FILE, PER_FILE))
def test_a_random_function_does_the_same(first: int, tmp_path: Path) -> None:
    numbers = range(first, first + PER_FILE)
    text = HEAD + "\n\n".join(Writer(number).function(f"f{number}") for number in numbers)
    path = tmp_path / f"random_{first}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for number in numbers:
        function = getattr(module, f"f{number}")
        scripted = jit.script(function)
        for call in range(4):
            wanted = outcome(function, arguments(call))
            found = outcome(scripted, arguments(call))
            assert equal(found, wanted), f"f{number}, call {call}\n{Writer(number).function('f')}"
