"""The subjects of a for loop: range, lists, tensors, enumerate, zip, reversed.

Loops over tuples and modules are unrolled, because their items are known.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from opscope.tensor.jit.scripting.convert import need
from opscope.tensor.jit.scripting.frame import Frame
from opscope.tensor.jit.scripting.graph import Block, GraphValue
from opscope.tensor.jit.scripting.numbers import binary
from opscope.tensor.jit.scripting.types import BOOL, INT, STR, TENSOR, ListOf, plain
from opscope.tensor.jit.scripting.values import (
    Constant,
    Items,
    Loopable,
    ModuleValue,
    Value,
    describe,
    type_of,
)
from opscope.tensor.nn import ModuleList, Sequential


def loopable(frame: Frame, value: Value, at: ast.AST) -> Items | Loopable:
    """The rounds of a loop over the value."""
    if isinstance(value, (Items, Loopable)):
        return value
    if isinstance(value, ModuleValue):
        return Items(module_items(frame, value, at))
    if isinstance(value, Constant) and isinstance(value.value, str):
        return Items(tuple(map(Constant, value.value)))
    type_ = type_of(value)
    type_ = type_ and plain(type_)
    if type_ == TENSOR:
        tensor = frame.graph_value(value, at)
        zero = frame.constant(0, INT, at)
        return Loopable(
            lambda: frame.emit_one("py::len", [tensor], INT, at),
            lambda place: frame.emit_one("core::select", [tensor, zero, place], TENSOR, at),
        )
    if isinstance(type_, ListOf) or type_ == STR:
        listed = frame.graph_value(value, at)
        part = type_.part if isinstance(type_, ListOf) else STR
        return Loopable(
            lambda: frame.emit_one("py::len", [listed], INT, at),
            lambda place: frame.receive(
                frame.emit_one("py::getitem", [listed, place], part, at), at
            ),
        )
    frame.fail(at, f"a loop cannot go over {describe(value)}", "range(...), a list or a tuple")


def module_items(frame: Frame, value: ModuleValue, at: ast.AST) -> tuple[Value, ...]:
    """The modules of a container."""
    if not isinstance(value.module, (ModuleList, Sequential)):
        frame.fail(at, f"a {type(value.module).__name__} is no list of modules", "a ModuleList")
    return tuple(map(frame.context.value_of, value.module))


def range_of(frame: Frame, arguments: list[Value], at: ast.AST) -> Loopable:
    """range(stop), range(start, stop), range(start, stop, step)."""
    if not 1 <= len(arguments) <= 3:
        frame.fail(at, "range takes one to three ints", "range(start, stop, step)")
    numbers: list[Value] = [
        each if isinstance(each, Constant) else need(frame, each, INT, at, "an argument of range")
        for each in arguments
    ]
    start: Value = Constant(0) if len(numbers) == 1 else numbers[0]
    stop = numbers[0] if len(numbers) == 1 else numbers[1]
    step: Value = numbers[2] if len(numbers) == 3 else Constant(1)
    is_plain = isinstance(step, Constant) and step.value == 1
    if is_plain:
        return Loopable(
            # Below zero there is no round, as for zero.
            lambda: stop if start == Constant(0) else binary(frame, ast.Sub(), stop, start, at),
            lambda place: (
                binary(frame, ast.Add(), start, place, at) if start != Constant(0) else place
            ),
        )
    listed = frame.emit_one(
        "py::range",
        [need(frame, each, INT, at, "an argument of range") for each in (start, stop, step)],
        ListOf(INT),
        at,
    )
    found = loopable(frame, listed, at)
    assert isinstance(found, Loopable)
    return found


def enumerated(frame: Frame, value: Value, start: Value, at: ast.AST) -> Items | Loopable:
    """enumerate(value, start)."""
    inner = loopable(frame, value, at)
    if isinstance(inner, Items):
        numbers = (
            binary(frame, ast.Add(), start, Constant(place), at)
            for place in range(len(inner.items))
        )
        return Items(tuple(Items(pair) for pair in zip(numbers, inner.items, strict=True)))
    return Loopable(
        inner.count,
        lambda place: Items((binary(frame, ast.Add(), start, place, at), inner.item(place))),
    )


def zipped(frame: Frame, values: Iterable[Value], at: ast.AST) -> Items | Loopable:
    """zip(...): as many rounds as the shortest has."""
    parts = [loopable(frame, value, at) for value in values]
    fixed = [part for part in parts if isinstance(part, Items)]
    if len(fixed) == len(parts):
        return Items(tuple(map(Items, zip(*(part.items for part in fixed), strict=False))))
    loops = [part if isinstance(part, Loopable) else _listed(frame, part, at) for part in parts]

    def count() -> Value:
        found = [frame.graph_value(part.count(), at) for part in loops]
        least = found[0]
        for each in found[1:]:
            least = frame.emit_one("py::min", [least, each], INT, at)
        return least

    return Loopable(count, lambda place: Items(tuple(part.item(place) for part in loops)))


def _listed(frame: Frame, items: Items, at: ast.AST) -> Loopable:
    """A tuple as a list, beside one whose length is unknown."""
    values = [frame.graph_value(item, at) for item in items.items]
    found = loopable(frame, frame.list_of(values, at), at)
    assert isinstance(found, Loopable)
    return found


def reversed_of(frame: Frame, value: Value, at: ast.AST) -> Items | Loopable:
    """reversed(value)."""
    inner = loopable(frame, value, at)
    if isinstance(inner, Items):
        return Items(inner.items[::-1])
    counts: list[Value] = []

    def count() -> Value:
        counts.append(inner.count())
        return counts[-1]

    def item(place: GraphValue) -> Value:
        last = binary(frame, ast.Sub(), counts[-1], Constant(1), at)
        found = frame.graph_value(binary(frame, ast.Sub(), last, place, at), at)
        return inner.item(found)

    return Loopable(count, item)


def collect(frame: Frame, rounds: Loopable, each: Callable[[Value], None], at: ast.AST) -> None:
    """A loop that assigns no variable, as a comprehension's."""
    count = frame.graph_value(rounds.count(), at)
    true = frame.constant(True, BOOL, at)
    block = Block(frame.block)
    place = block.take(INT)
    before = frame.variables
    frame.variables = dict(before)
    with frame.inside(block):
        each(rounds.item(place))
        block.outputs.append(true)
    frame.variables = before
    frame.emit("prim::Loop", [count, true], [], at, blocks=[block])
