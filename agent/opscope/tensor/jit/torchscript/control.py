"""Translate control flow: follow branches that are known, write the others as If and Loop.

A name that a branch or a loop binds has one type in the graph. Each part of a tuple is a value of
its own. If a known list changes in a branch that depends on the input, it becomes a list of the
graph first.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from opscope.tensor.jit.nodes import Block
from opscope.tensor.jit.torchscript import scalars
from opscope.tensor.jit.torchscript.ranges import Range
from opscope.tensor.jit.torchscript.syntax import RefusedError, common_type, raises
from opscope.tensor.jit.torchscript.values import (
    UNKNOWN,
    OwnList,
    Symbol,
    UnknownError,
    Value,
    differing,
    has_unknown,
    is_constant,
    leaves,
    merged,
    rebuilt,
    type_of,
)
from opscope.tensor.jit.torchscript.writer import Writer

_ROUNDS = 10_000
_MOST_ROUNDS = (1 << 63) - 1
_TRIES = 4
_CHANGING = frozenset({"append", "insert", "extend", "pop", "clear", "reverse", "_set_item"})


_Rounds = Callable[[Symbol, dict[str, Value]], Value]


class Control:
    """The part of a walk that decides what runs."""

    writer: Writer

    def _statement(self, statement: ast.stmt, names: dict[str, Value]) -> None:
        raise NotImplementedError

    def _expression(self, node: ast.expr, names: dict[str, Value]) -> Value:
        raise NotImplementedError

    # ---- loops -------------------------------------------------------------------------------

    def _iterated(self, node: ast.expr, names: dict[str, Value]) -> Value:
        """What a `for` goes over: a range of ints, some of which may be known by the run alone."""
        match node:
            case ast.Call(func=ast.Name(id="range"), args=given):
                bounds = [self._expression(each, names) for each in given]
                if has_unknown(bounds):
                    return UNKNOWN
                if is_constant(bounds):
                    return range(*bounds)
                return Range(*({1: (0, *bounds, 1), 2: (*bounds, 1)}.get(len(bounds), bounds)))
            case _:
                return self._expression(node, names)

    def _for(
        self, name: str, values: Value, body: Sequence[ast.stmt], names: dict[str, Value]
    ) -> None:
        if isinstance(values, range | list | tuple):
            if len(values) > _ROUNDS:
                raise RefusedError(f"a loop of more than {_ROUNDS} rounds")
            for each in values:
                names[name] = each
                for statement in body:
                    self._statement(statement, names)
            return
        if has_unknown(values):
            names[name] = UNKNOWN
            self._look_for_missing([body], names)
            return
        if isinstance(values, Range):
            most, item_at = values.rounds(self.writer), values.item_at
        else:
            most = scalars.one(self.writer, "len", values)

            def item_at(writer: Writer, round: Value) -> Value:
                return scalars.item(writer, values, round)

        def rounds(round: Symbol, own: dict[str, Value]) -> Value:
            own[name] = item_at(self.writer, round)
            for statement in body:
                self._statement(statement, own)
            return True

        self._loop(body, names, most, True, rounds)

    def _while(self, test: ast.expr, body: Sequence[ast.stmt], names: dict[str, Value]) -> None:
        def rounds(round: Symbol, own: dict[str, Value]) -> Value:
            for statement in body:
                self._statement(statement, own)
            return self._expression(test, own)

        condition = self._expression(test, names)
        if has_unknown(condition):
            self._look_for_missing([body], names)
        else:
            self._loop(body, names, _MOST_ROUNDS, condition, rounds)

    def _loop(
        self,
        body: Sequence[ast.stmt],
        names: dict[str, Value],
        most: Value,
        condition: Value,
        rounds: _Rounds,
    ) -> None:
        """`rounds` writes one round and gives whether there is another one."""
        self._share_lists(body, names)
        bound = bound_names(body)
        carried = [name for name in names if name in bound]
        if has_unknown([names[name] for name in carried]):
            self._look_for_missing([body], names)
            return
        first = [leaf for name in carried for leaf in leaves(names[name])]
        kinds = [type_of(each) for each in first]
        try:
            self._write_loop(names, most, condition, rounds, carried, first, kinds)
        except UnknownError:
            names.update(dict.fromkeys(carried, UNKNOWN))

    def _write_loop(
        self,
        names: dict[str, Value],
        most: Value,
        condition: Value,
        rounds: _Rounds,
        carried: list[str],
        first: list[Value],
        kinds: list[str],
    ) -> None:
        if None in first:  # what becomes of it shows its type
            kinds = self._round(rounds, names, carried, first, kinds, is_first=True)[2]
        for _ in range(_TRIES):
            block, taken, wider = self._round(rounds, names, carried, first, kinds)
            if wider == kinds:
                break
            kinds = wider
        else:
            raise RefusedError(f"types that change in each round: {', '.join(carried)}")
        block.inputs = [(each.name, each.type) for each in taken]
        found = self.writer.loop([most, condition, *first], block, kinds)
        outputs = iter([None if each.type == "None" else each for each in found])
        for name in carried:
            names[name] = rebuilt(names[name], outputs)

    def _round(
        self,
        rounds: _Rounds,
        names: dict[str, Value],
        carried: list[str],
        first: list[Value],
        kinds: list[str],
        is_first: bool = False,
    ) -> tuple[Block, list[Symbol], list[str]]:
        """The block of a loop that carries values of these kinds, in the first round with each None
        as it is; the block's inputs; and the kinds that it carries on."""
        round, taken = self.writer.new("int"), [self.writer.new(kind) for kind in kinds]
        own = dict(names)
        begun = zip(first, taken, strict=True)
        given = iter(
            [None if b.type == "None" or (is_first and a is None) else b for a, b in begun]
        )
        for name in carried:
            own[name] = rebuilt(names[name], given)
        with self.writer.block() as block:
            again = rounds(round, own)
            results = [leaf for name in carried for leaf in leaves(own[name])]
            if has_unknown([again, *results]):
                raise UnknownError
            if len(results) != len(first):
                raise RefusedError(f"other tuples after a round: {', '.join(carried)}")
            block.results = [self.writer.symbol(each).name for each in (again, *results)]
        pairs = zip(taken, results, strict=True)
        wider = [common_type(a, b, ", ".join(carried)) for a, b in pairs]
        return block, [round, *taken], wider

    def _share_lists(self, body: Sequence[ast.stmt], names: dict[str, Value]) -> None:
        """Lists that `body` may change become lists of the graph, by each of their names."""
        for known in _changed_lists(body, names):
            shared = UNKNOWN if has_unknown(known) else self.writer.symbol(known)
            for each, value in names.items():
                if value is known:
                    names[each] = shared

    # ---- branches ----------------------------------------------------------------------------

    def _if(
        self,
        condition: Value,
        body: Sequence[ast.stmt],
        otherwise: Sequence[ast.stmt],
        names: dict[str, Value],
    ) -> None:
        if has_unknown(condition):
            self._look_for_missing([body, otherwise], names)
            return
        if not isinstance(condition, Symbol):
            for statement in body if condition else otherwise:
                self._statement(statement, names)
            return
        condition = scalars.convert(self.writer, "bool", condition)
        raising = [any(map(raises, each)) for each in (body, otherwise)]
        if any(raising):
            # The run ends in that branch, so what follows is the other one.
            failing, going = (body, otherwise) if raising[0] else (otherwise, body)
            own = dict(names)
            with self.writer.block() as block:
                for statement in failing:
                    self._statement(statement, own)
            with self.writer.block() as empty:
                pass
            blocks = (block, empty) if raising[0] else (empty, block)
            self.writer.conditional(condition, blocks, [])
            for statement in going:
                self._statement(statement, names)
            return
        self._branches(condition, body, otherwise, names)

    def _look_for_missing(
        self, parts: Sequence[Sequence[ast.stmt]], names: dict[str, Value]
    ) -> None:
        """Walks statements that may run, for other operators that are missing. What they write
        is dropped; what they bind is unknown after them."""
        for known in _changed_lists([each for part in parts for each in part], names):
            names.update({each: UNKNOWN for each, value in names.items() if value is known})
        for statements in parts:
            own = dict(names)
            with self.writer.block():
                for statement in statements:
                    self._statement(statement, own)
        names.update(dict.fromkeys(bound_names([each for part in parts for each in part]), UNKNOWN))

    def _branches(
        self,
        condition: Symbol,
        body: Sequence[ast.stmt],
        otherwise: Sequence[ast.stmt],
        names: dict[str, Value],
    ) -> None:
        self._share_lists([*body, *otherwise], names)
        found = []
        for statements in (body, otherwise):
            own = dict(names)
            with self.writer.block() as block:
                for statement in statements:
                    self._statement(statement, own)
            found.append((block, own))
        (first, one), (second, two) = found
        changed = [
            name
            for name in one
            if name in two
            and (one[name] is not names.get(name) or two[name] is not names.get(name))
        ]
        pairs = [pair for name in changed for pair in differing(one[name], two[name])]
        types = [common_type(*pair, ", ".join(changed)) for pair in pairs]
        for number, block in enumerate((first, second)):
            with self.writer.inside(block):
                block.results.extend(self.writer.symbol(pair[number]).name for pair in pairs)
        outputs = iter(self.writer.conditional(condition, (first, second), types))
        for name in one:
            if name in two:
                names[name] = one[name]
        names.update({name: merged(one[name], two[name], outputs) for name in changed})


def _changed_lists(body: Sequence[ast.stmt], names: dict[str, Value]) -> list[OwnList]:
    found = {}
    for one in body:
        for node in ast.walk(one):
            match node:
                case ast.Call(func=ast.Attribute(attr=attr), args=[ast.Name(id=name), *_]) if (
                    attr in _CHANGING and isinstance(names.get(name), OwnList)
                ):
                    found[id(names[name])] = names[name]
    return list(found.values())


def bound_names(body: Sequence[ast.stmt]) -> set[str]:
    nodes = [node for statement in body for node in ast.walk(statement)]
    return {
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
