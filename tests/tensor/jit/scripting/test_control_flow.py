"""if, while, for, break, continue and return of scripted functions, compared with Python."""

# The functions to script have the annotations that scripting needs, and no others.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"
# ruff: noqa: B905, RET507

from __future__ import annotations

import linecache
from pathlib import Path
from typing import Any, Optional

import pytest

from opscope import ScriptError
from opscope import tensor as ot
from opscope.tensor import Tensor, jit
from tests.tensor.jit.scripting.same import check

X = ot.tensor([1.0, -2.0, 3.0])


def test_if_elif_else() -> None:
    def choose(x, n: int):
        if n > 2:
            y = x * 2
        elif n == 0:
            y = -x
        else:
            y = x + n
        return y

    scripted = check(choose, [X, 3], [X, 0], [X, 1])
    assert "prim::If" in str(scripted.graph)


def test_a_branch_by_the_value_of_a_tensor() -> None:
    def flip(x):
        if x.sum() > 0:
            x = -x
        if bool((x > 0).all()):
            return x * 10
        return x

    check(flip, [X], [-X], [X.abs()], [-X.abs()])


def test_while_with_break_and_continue() -> None:
    def run(n: int, stop: int):
        total = 0
        while n > 0:
            n -= 1
            if n % 2 == 0:
                continue
            if n == stop:
                break
            total += n
        return total, n

    scripted = check(run, [9, 3], [9, 4], [0, 0], [20, -1])
    assert "prim::Loop" in str(scripted.graph)


def test_an_endless_loop_ends_by_return() -> None:
    def collatz(n: int) -> int:
        steps = 0
        while True:
            if n == 1:
                return steps
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1

    check(collatz, [1], [6], [27])


def test_early_returns_at_all_depths() -> None:
    def search(rows: list[int], columns: list[int], wanted: int):
        if wanted < 0:
            return -1, "negative"
        for row in rows:
            if row == 0:
                continue
            for column in columns:
                if row * column == wanted:
                    return row, "found"
                if row * column > 50:
                    break
        return 0, "nothing"

    rows, columns = [0, 2, 3, 9], [1, 5, 7, 8]
    check(search, [rows, columns, 21], [rows, columns, -3], [rows, columns, 13], [[], [], 1])


def test_ranges() -> None:
    def total(a: int, b: int, c: int):
        one = 0
        for i in range(a):
            one += i
        two = 0
        for i in range(a, b):
            two += i
        three = 0
        for i in range(a, b, c):
            three += i
        return one, two, three

    check(total, [3, 9, 2], [9, 3, -1], [-4, 5, 3], [0, 0, 1], [3, 9, 0])


def test_loops_over_lists_tensors_and_texts() -> None:
    def walk(xs: list[float], t, text: str):
        total = t[0] * 0
        for row in t:
            total = total + row * xs[0]
        count = 0
        for place, x in enumerate(xs, 2):
            count += place * int(x)
        for a, b in zip(xs, [1, 2, 3]):
            count += int(a) * b
        for letter in text:
            if letter == "a":
                count += 100
        for x in reversed(xs):
            count = count * 2 + int(x)
        return total, count

    check(walk, [[1.5, 2.5], ot.ones((3, 2)), "banana"], [[4.0], X, ""])


def test_loops_over_tuples_are_unrolled() -> None:
    def apply(x, n: int):
        for factor, name in ((2, "a"), (3, "b"), (5, "c")):
            if name == "b" and n > 3:
                continue
            if factor > n:
                break
            x = x * factor
        return x

    scripted = check(apply, [X, 1], [X, 2], [X, 3], [X, 4], [X, 9])
    assert "prim::Loop" not in str(scripted.graph)


def test_none_until_the_loop_finds_something() -> None:
    def best(xs: list[int]) -> Optional[int]:  # noqa: UP045 - what people write
        found = None
        for x in xs:
            if found is None or x > found:
                found = x
        return found

    check(best, [[]], [[1, 7, 3]])


def test_a_variable_of_the_branch_that_stays() -> None:
    def use(n: int):
        for i in range(n):
            if i == 2:
                continue
            elif i == 5:
                break
            else:
                square = i * i
            n += square
        return n

    check(use, [0], [3], [9])


def test_conditions_are_evaluated_only_as_far_as_needed() -> None:
    def first(xs: list[int], n: int):
        if n < len(xs) and xs[n] > 0:
            return "positive"
        if n >= len(xs) or xs[n] == 0:
            return "nothing"
        return "negative"

    check(first, [[1, -1, 0], 0], [[1, -1, 0], 1], [[1, -1, 0], 2], [[], 5])


def test_chained_comparisons_and_values_of_and_or() -> None:
    def values(a: int, b: int, text: str):
        return a < b < 10 > a, (a or b), (a and b), text or "empty", not a

    check(values, [1, 5, ""], [0, 50, "x"], [5, 1, "y"])


def test_asserts_and_exceptions() -> None:
    def guarded(x, n: int):
        assert n != 3, f"n is {n}"
        assert x.ndim == 1
        if n > 5:
            raise ValueError(f"too large: {n}")
        if n < -5:
            raise IndexError
        return x[n]

    check(guarded, [X, 0], [X, 3], [X, 6], [X, -6], [X, 5], [ot.ones((1, 1)), 0])


def test_optional_values_are_refined_by_tests() -> None:
    def add(x, y: Tensor | None = None, n: int | None = None):
        if y is not None:
            x = x + y
        if n is None:
            return x
        assert y is not None
        return x * n + y

    check(add, [X], [X, X], [X, X, 3], [X, None, 3], [X, None, None])


def test_loops_keep_what_tests_have_shown() -> None:
    def times(h: Tensor, n: int) -> Tensor:
        return h * n

    def grow(x: Tensor, h: Tensor | None = None, n: int = 3):
        if h is None:
            h = ot.zeros(2)
        for i in range(n):
            h = times(h, i) + x.sum()
        return h.abs()

    def unless(x: Tensor, h: Tensor | None = None, n: int = 3):
        assert h is not None
        for i in range(n):
            h = h + x.sum()
            h = h if i != 1 else None
            if h is None:
                h = x.sum()
        while h.sum() < 100:
            h = h.abs() * 2 + 1
        return h

    def lost(x, h: Tensor | None = None, n: int = 3):
        if h is None:
            h = x.sum()
        for _ in range(n):
            if h is not None:
                x = x + h
            h = None
        return x if h is None else x * 2 + h

    check(grow, [X], [X, ot.ones(2)], [X, None, 0])
    check(unless, [X, X], [X], [X, X, 0])
    check(lost, [X], [X, ot.ones(1)], [X, None, 0])


def test_a_function_without_a_result() -> None:
    def clear(x, xs: list[int]):
        if len(xs) > 2:
            return
        x += 1
        xs.append(1)

    check(clear, [X, []], [X, [1, 2, 3]])


def test_functions_call_each_other() -> None:
    scripted = check(outer, [X, 3], [X, -1])
    assert "prim::CallFunction" in str(scripted.graph)


def double(x, times: int = 1, *, plus: float = 0):
    for _ in range(times):
        x = x * 2
    return x + plus


def outer(x, n: int):
    return double(double(x), n, plus=n) + double(times=2, x=x)


@jit.script
def halve(x, times: int = 1):
    for _ in range(times):
        x = x / 2
    return x


def test_a_scripted_function_calls_another() -> None:
    def use(x):
        return halve(halve(x), times=2) + 1

    found = jit.script(use)(X)
    assert ot.allclose(found, X / 8 + 1)


def test_a_comprehension_of_several_lines() -> None:
    def make(n: int, k: int):
        return [
            x * k
            for x in (1, 2, 3)
            if n > x
        ]  # fmt: skip

    check(make, [0, 2], [2, 5], [9, 1])


def test_many_returns_are_nested(tmp_path: Path) -> None:
    lines = [f"    if n == {number}:\n        return {number * 2}\n" for number in range(80)]
    path = tmp_path / "many_returns.py"
    for count in (50, 80):
        path.write_text("def many(n: int):\n" + "".join(lines[:count]) + "    return -1\n")
        linecache.checkcache()
        names: dict[str, Any] = {}
        exec(compile(path.read_text(), str(path), "exec"), names)
        if count == 50:
            check(names["many"], [3], [49], [99])
            continue
        with pytest.raises(ScriptError, match="many has more than 60 branches"):
            jit.script(names["many"])
