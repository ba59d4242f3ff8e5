"""Numbers, texts, tuples and lists of scripted functions, compared with Python."""

# The functions to script have the annotations that scripting needs, and no others.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"
# ruff: noqa: B905, C419, RUF005, SIM300

from __future__ import annotations

import math
from typing import Any, List, Optional, Tuple  # noqa: UP035 - what people write

import pytest

from opscope import tensor as ot
from opscope.tensor import Tensor
from tests.tensor.jit.scripting.same import check


def test_numbers() -> None:
    def numbers(a: int, b: int, x: float, c: bool):
        return (
            a + b * x - a / b,
            a // b,
            a % b,
            x // b,
            x % a,
            a**2,
            x**b,
            -a,
            abs(b),
            a & 6 | b ^ 1,
            ~a,
            a << 2 >> 1,
            c + 1,
            c and a > 2,
            max(a, b),
            min(x, 2.0),
            round(x),
            int(x),
            float(a),
            bool(a),
            divmod(a, b),
        )

    check(numbers, [7, 2, 2.5, True], [-7, 3, -1.5, False], [1, 0, 0.0, True])


def test_math() -> None:
    def compute(x: float, n: int):
        return (
            math.sqrt(x) + math.exp(x / 10) + math.log(x),
            math.floor(x),
            math.ceil(n),
            math.sqrt(2 / math.pi),
            math.inf,
        )

    check(compute, [2.5, 3], [-1.0, 3])


def test_texts() -> None:
    def texts(a: str, n: int):
        joined = a + "-" + str(n)
        return (
            joined,
            joined[1:],
            joined[0],
            len(joined),
            "b" in a,
            a == "abc",
            a < "b",
            ", ".upper(),
            a * n + "-" * 3 + n * a,
        )

    check(texts, ["abc", 3], ["", 0], ["é\N{SNOWMAN}", -1])


def test_lists() -> None:
    def lists(xs: list[int], n: int):
        ys = xs
        ys.append(n)
        zs = xs.copy()
        zs.insert(1, 5)
        zs.extend([1, 2])
        zs += [9]
        last = zs.pop()
        first = zs.pop(0)
        zs.reverse()
        zs[0] = n
        empty = []
        for z in zs:
            if z > 2:
                empty.append(z)
        return xs, zs, last, first, empty, zs[1:-1], xs * 2, xs + zs, n in xs, len(empty), xs == ys

    check(lists, [[1, 2, 3], 4], [[], -1])


def test_functions_of_lists() -> None:
    def reduce(xs: list[int], ys: list[float]):
        return (
            sum(xs),
            sum(ys, 1.5),
            max(xs),
            min(ys),
            any([x > 2 for x in xs]),
            all([y > 0 for y in ys]),
            xs.index(2),
            xs.count(2),
            math.prod(xs),
            list(reversed(xs)),
            [x * y for x, y in zip(xs, ys)],
            [i for i in range(5) if i % 2],
        )

    check(reduce, [[1, 2, 3], [0.5, 2.0]], [[2], [-1.0]], [[], [1.0]], [[1], [1.0]])


def test_tuples() -> None:
    def tuples(a: int, pair: tuple[int, float]):
        b, c = pair
        a, b = b, a
        both = (a, b, *pair)
        (d, e), f = (a, 1), both[1:]
        return both, both[-1], d, e, f, len(both), (1, 2) == (a, b), both + (c,)

    check(tuples, [3, (4, 2.5)], [1, (2, 0.0)])


def test_annotated_variables() -> None:
    def annotated(n: int):
        xs: list[float] = [1, 2]
        y: float = n
        z: int | None = None
        if n > 2:
            z = n
        xs.append(y)
        return [x / 2 for x in xs], z

    check(annotated, [1], [3])


def test_print(capfd: pytest.CaptureFixture[str]) -> None:
    def show(x, n: int):
        print("n:", n, 1.5, True, None, "text", [n, 2], (n, "a"))
        print(f"{n} of {n + 1}")
        return x

    scripted = check(show)
    scripted(ot.ones(2), 3)
    shown = capfd.readouterr().out
    show(ot.ones(2), 3)
    assert shown == capfd.readouterr().out


def test_names_outside_the_function() -> None:
    weights, factor = ot.tensor([2.0, 3.0]), 4

    def use(x):
        return x * weights * factor + CONSTANTS[1] - weights

    scripted = check(use, [ot.ones(2)])
    assert list(scripted.attributes) == ["constants.0"]
    assert scripted.attributes["constants.0"] is weights


CONSTANTS = (1, 2.5)


def test_constants_of_any_size_are_left_to_the_run() -> None:
    def huge(n: int):
        if n == 0:
            return 2**4096
        if n == 1:
            return 1 << 2000
        if n == 2:
            return 1 // 0
        return len("ab" * 3) + 2**62

    scripted = check(huge, [2], [3])
    for n in (0, 1):
        with pytest.raises(OverflowError):
            scripted(n)


def test_annotations_of_all_kinds() -> None:
    def annotated(
        a: int,
        b: Optional[List[float]],  # noqa: UP006, UP045 - what people write
        c: Tuple[int, str],  # noqa: UP006
        d: List[Tensor] | None = None,  # noqa: UP006
        e: tuple[int, ...] = (1, 2),
        f: Any = None,
    ) -> Tuple[Optional[int], int]:  # noqa: UP006, UP045
        total = 0
        for each in e:
            total += each
        if b is not None:
            total += len(b)
        if d is not None:
            total += len(d)
        return (a if a > 0 else None), total + c[0]

    check(annotated, [1, None, (1, "a")], [-1, [1.5], (2, "b"), [ot.ones(1)], [3]])
