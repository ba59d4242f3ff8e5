"""Random Python functions of the constructs that scripting supports, which always end.

Each takes and returns values of all types, so that a wrong step anywhere shows in the result.
Variables are only used where all paths have assigned them.
"""

from __future__ import annotations

import random

HEAD = "def {name}(x: Tensor, y: Tensor, n: int, a: float, c: bool, items: list[int]):"
PARAMETERS = {"x": "Tensor", "y": "Tensor", "n": "int", "a": "float", "c": "bool", "items": "list"}
RESULT = "({x}, {n}, {a}, {c}, {items})"
INT_OPERATORS = ("+", "-", "*", "//", "%", "&", "|", "^")
FLOAT_OPERATORS = ("+", "-", "*", "/", "//", "%")
TENSOR_OPERATORS = ("+", "-", "*", "/")
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


class Writer:
    """Writes one function."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.names = 0
        self.fixed = {"n"}
        """Variables that are not assigned again: loops count with them."""

    def new_name(self) -> str:
        self.names += 1
        return f"v{self.names}"

    def variable(self, kind: str, known: dict[str, str]) -> str:
        return self.random.choice([name for name, each in known.items() if each == kind])

    # ---- expressions ------------------------------------------------------------------------

    def expression(self, kind: str, known: dict[str, str], depth: int = 2) -> str:
        if depth == 0 or self.random.random() < 0.2:
            return self.leaf(kind, known)
        if self.random.random() < 0.12:
            test = self.test(known, depth - 1)
            one, other = (self.expression(kind, known, depth - 1) for _ in range(2))
            return f"({one} if {test} else {other})"
        made: str = getattr(self, f"make_{kind}")(known, depth - 1)
        return made

    def leaf(self, kind: str, known: dict[str, str]) -> str:
        if kind == "int" and self.random.random() < 0.4:
            return str(self.random.randint(-3, 6))
        if kind == "float" and self.random.random() < 0.4:
            return str(self.random.choice((-1.5, 0.0, 0.25, 2.0)))
        if kind == "bool" and self.random.random() < 0.2:
            return self.random.choice(("True", "False"))
        return self.variable(kind, known)

    def make_int(self, known: dict[str, str], depth: int) -> str:
        one, other = (self.expression("int", known, depth) for _ in range(2))
        listed = self.variable("list", known)
        return self.random.choice(
            (
                f"({one} {self.random.choice(INT_OPERATORS)} {other}) % 50",
                f"-({one})",
                f"abs({one})",
                f"max({one}, {other})",
                f"min({one}, {other})",
                f"len({listed})",
                f"{listed}[{one}]",
                f"int({self.expression('float', known, depth)} % 9)",
                f"{self.variable('Tensor', known)}.shape[0]",
                f"count({one}, {other})",
                f"fork(count, {one}, {other}).wait()",
                f"sum({listed}) % 30",
            )
        )

    def make_float(self, known: dict[str, str], depth: int) -> str:
        one, other = (self.expression("float", known, depth) for _ in range(2))
        return self.random.choice(
            (
                f"({one} {self.random.choice(FLOAT_OPERATORS)} {other})",
                f"({one} {self.random.choice('+-*')} {self.expression('int', known, depth)})",
                f"float({self.expression('int', known, depth)})",
                f"{self.expression('int', known, depth)} / 4",
                f"abs({one})",
                f"float({self.variable('Tensor', known)}.sum())",
            )
        )

    def make_bool(self, known: dict[str, str], depth: int) -> str:
        return self.test(known, depth)

    def make_Tensor(self, known: dict[str, str], depth: int) -> str:  # noqa: N802 - a kind's name
        one, other = (self.expression("Tensor", known, depth) for _ in range(2))
        number = self.expression(self.random.choice(("int", "float")), known, depth)
        sign = self.random.choice(TENSOR_OPERATORS)
        return self.random.choice(
            (
                f"({one} {sign} {other})",
                f"({one} {sign} {number})",
                f"({number} {self.random.choice('+-*')} {one})",
                f"({one}).relu()",
                f"-({one})",
                f"({one}).clamp(-2, max=2.5)",
                f"({one})[[2, 1, 0]]",
                f"scale({one}, by={number})",
                f"wait(fork(scale, {one}, by={number}))",
                f"ot.where({one} > {number}, {one}, {other})",
            )
        )

    def make_list(self, known: dict[str, str], depth: int) -> str:
        one = self.expression("int", known, depth)
        listed = self.variable("list", known)
        return self.random.choice(
            (
                f"[{one}, {self.expression('int', known, depth)}]",
                f"{listed}[1:]",
                f"{listed}[::-1]",
                f"({listed} + [{one}])",
                f"[each + {one} for each in {listed}]",
                f"[each for each in {listed} if each > {one}]",
                "[each * 2 % 50 for each in range(n % 5)]",
            )
        )

    def test(self, known: dict[str, str], depth: int) -> str:
        if depth <= 0:
            return self.leaf("bool", known)
        one, other = (self.expression("int", known, depth - 1) for _ in range(2))
        sign = self.random.choice(COMPARISONS)
        return self.random.choice(
            (
                f"{one} {sign} {other}",
                f"{self.expression('float', known, depth - 1)} {sign} {other}",
                f"{one} {sign} {other} < {self.expression('int', known, depth - 1)}",
                f"not {self.variable('bool', known)}",
                f"({self.test(known, depth - 1)} and {self.test(known, depth - 1)})",
                f"({self.test(known, depth - 1)} or {self.test(known, depth - 1)})",
                f"{one} in {self.variable('list', known)}",
                f"bool(({self.variable('Tensor', known)} > 0).any())",
            )
        )

    # ---- statements -------------------------------------------------------------------------

    def function(self, name: str) -> str:
        """The function's text."""
        known = dict(PARAMETERS)
        self.write(0, HEAD.format(name=name))
        if not self.block(1, known, False, 5):
            self.leave(1, known)
        return "\n".join(self.lines) + "\n"

    def write(self, level: int, line: str) -> None:
        self.lines.append("    " * level + line)

    def leave(self, level: int, known: dict[str, str]) -> None:
        chosen = {name: self.expression(kind, known, 1) for name, kind in PARAMETERS.items()}
        self.write(level, f"return {RESULT.format(**chosen)}")

    def block(self, level: int, known: dict[str, str], in_loop: bool, length: int) -> bool:
        """Statements; whether none may follow."""
        for _ in range(self.random.randint(1, length)):
            if self.statement(level, known, in_loop):
                return True
        return False

    def statement(self, level: int, known: dict[str, str], in_loop: bool) -> bool:
        chance = self.random.random()
        if level < 4 and chance < 0.30:
            self.branch(level, known, in_loop)
        elif level < 4 and chance < 0.45:
            self.loop(level, known)
        elif in_loop and level > 2 and chance < 0.55:
            self.write(level, self.random.choice(("break", "continue")))
            return True
        elif level > 1 and chance < 0.60:
            self.leave(level, known)
            return True
        elif chance < 0.68:
            self.change(level, known)
        else:
            self.assignment(level, known)
        return False

    def assignment(self, level: int, known: dict[str, str]) -> None:
        kind = self.random.choice(("int", "float", "bool", "Tensor", "list"))
        value = self.expression(kind, known)
        if kind == "list" and level > 1:  # Otherwise it could grow without end.
            value = f"({value})[:6]"
        name = self.variable(kind, known)
        if name in self.fixed or self.random.random() < 0.4:
            name = self.new_name()
        self.write(level, f"{name} = {value}")
        known[name] = kind

    def change(self, level: int, known: dict[str, str]) -> None:
        listed, number = self.variable("list", known), self.expression("int", known, 1)
        tensor = self.variable("Tensor", known)
        one, other = self.variable("int", known), self.new_name()
        lines = [
            f"{tensor} += {self.expression('float', known, 1)}",
            f"{tensor} *= 0.5",
            f"{tensor}[{number}] = {self.expression('float', known, 1)}",
            f"{tensor}[1:] = {self.expression('Tensor', known, 1)}[:2]",
            f"{listed}[0] = {number}",
            f"{listed}.reverse()",
            f"{other}, {self.new_name()} = {number}, {one}",
        ]
        line = self.random.choice(lines)
        self.write(level, line)
        if line.startswith(other):
            known[other] = "int"

    def branch(self, level: int, known: dict[str, str], in_loop: bool) -> None:
        ends = []
        self.write(level, f"if {self.test(known, 2)}:")
        ends.append(self.arm(level, known, in_loop))
        if self.random.random() < 0.3:
            self.write(level, f"elif {self.test(known, 2)}:")
            ends.append(self.arm(level, known, in_loop))
        if self.random.random() < 0.6:
            self.write(level, "else:")
            ends.append(self.arm(level, known, in_loop))
            common = [end for end in ends if end is not None]
            for name in common[0] if common else ():
                if all(end.get(name) == common[0][name] for end in common):
                    known[name] = common[0][name]

    def arm(self, level: int, known: dict[str, str], in_loop: bool) -> dict[str, str] | None:
        inner = dict(known)
        return None if self.block(level + 1, inner, in_loop, 3) else inner

    def loop(self, level: int, known: dict[str, str]) -> None:
        inner = dict(known)
        kind = self.random.choice(("range", "list", "while", "tensor", "enumerate", "tuple"))
        name = self.new_name()
        inner[name] = "int"
        if kind == "range":
            stop = self.expression("int", known, 1)
            self.write(level, f"for {name} in range(abs({stop}) % 4):")
        elif kind == "list":
            self.write(level, f"for {name} in {self.variable('list', known)}.copy()[:4]:")
        elif kind == "enumerate":
            place = self.new_name()
            inner[place] = "int"
            listed = self.variable("list", known)
            self.write(level, f"for {place}, {name} in enumerate({listed}[:3]):")
        elif kind == "tensor":
            inner[name] = "float"
            self.write(level, f"for row in {self.variable('Tensor', known)}.clone():")
            self.write(level + 1, f"{name} = float(row)")
        elif kind == "tuple":
            self.write(level, f"for {name} in ({self.expression('int', known, 1)}, 2, n):")
        else:
            self.fixed.add(name)
            self.write(level, f"{name} = 0")
            self.write(level, f"while {name} < 4 and {self.test(known, 1)}:")
            self.write(level + 1, f"{name} += 1")
        self.block(level + 1, inner, True, 4)
