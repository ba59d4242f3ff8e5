"""Write a graph as Python code, for people.

The code runs with `import opscope`, `from opscope import tensor`, `import math` and `attributes`,
the model's tensors by name. It does what the graphs do, except that Python's integers have no
limit.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping, Sequence

from opscope.tensor.jit.nodes import Block, Node, from_text
from opscope.tensor.jit.python_expressions import (
    INLINED,
    STATEMENTS,
    USED_NAMES,
    expression,
    literal,
    raise_statement,
)

_ENDLESS = str((1 << 63) - 1)


def python_code(functions: Mapping[str, str], entry: str) -> str:
    """The code of all functions, the entry last, from the texts of their graphs."""
    order = [name for name in functions if name != entry] + [entry]
    return "\n\n".join(_Function(name, functions[name]).code() for name in order)


def function_name(name: str) -> str:
    """The Python name of a function of a model: `layers_0_forward`."""
    return re.sub(r"\W", "_", name)


class _Function:
    """The lines of one function as they are written."""

    def __init__(self, name: str, text: str) -> None:
        self._name = function_name(name)
        self._body = from_text(text)
        self._expressions: dict[str, str] = {}  # by the name of the value
        self._taken: set[str] = set()
        self._lines: list[str] = []
        self._scope: str | None = None
        self._uses = self._body.uses()

    def code(self) -> str:
        inputs = ", ".join(self._define(name) for name, _ in self._body.inputs)
        self._lines.append(f"def {self._name}({inputs}):")
        self._write_nodes(self._body, "    ")
        results = self._read(self._body.results)
        self._lines.append(f"    return {', '.join(results)}".rstrip())
        return "\n".join(self._lines) + "\n"

    # ---- names --------------------------------------------------------------------------------

    def _define(self, value: str) -> str:
        """A variable for the value."""
        base = re.sub(r"\W", "_", value)
        base = f"t{base}" if base[:1].isdigit() else base
        if keyword.iskeyword(base) or base in USED_NAMES:
            base += "_"
        name, count = base, 1
        while name in self._taken:
            count += 1
            name = f"{base}_{count}"
        self._taken.add(name)
        self._expressions[value] = name
        return name

    def _read(self, values: Sequence[str]) -> list[str]:
        return [self._expressions[value] for value in values]

    # ---- nodes --------------------------------------------------------------------------------

    def _write_nodes(self, block: Block, indent: str) -> None:
        used_here = {name for node in block.nodes for name in node.inputs} | set(block.results)
        for node in block.nodes:
            if node.kind == "prim::Constant":
                ((name, type),) = node.outputs
                self._expressions[name] = literal(node.attributes["value"], type)
            elif node.kind == "prim::GetAttr":
                self._expressions[node.output] = (
                    f"attributes[{literal(node.attributes['name'], '')}]"
                )
            elif node.kind in INLINED and self._is_inlined(node.output, used_here):
                self._expressions[node.output] = self._expression(node, self._read(node.inputs))
            else:
                self._write_scope(node, indent)
                self._write_node(node, indent)

    def _is_inlined(self, value: str, used_here: set[str]) -> bool:
        """Its only use is in the block that defines it, so that it is not computed more often."""
        return value in used_here and self._uses[value] == 1

    def _write_scope(self, node: Node, indent: str) -> None:
        if node.scope != self._scope and node.scope is not None:
            self._lines.append(f"{indent}# {node.scope}")
        self._scope = node.scope

    def _write_node(self, node: Node, indent: str) -> None:
        inputs = self._read(node.inputs)
        if node.kind == "prim::If":
            self._write_if(node, indent)
        elif node.kind == "prim::Loop":
            self._write_loop(node, indent)
        elif node.kind == "prim::RaiseException":
            self._lines.append(f"{indent}{raise_statement(inputs[0], inputs[1])}")
        elif node.kind == "prim::Print":
            self._lines.append(f"{indent}print({', '.join(inputs)})")
        elif node.kind in STATEMENTS:
            self._lines.append(f"{indent}{STATEMENTS[node.kind].format(*inputs)}")
        elif node.kind in ("prim::ListUnpack", "prim::TupleUnpack"):
            targets = ", ".join(self._define(name) for name, _ in node.outputs)
            self._lines.append(f"{indent}[{targets}] = {inputs[0]}")
        else:
            self._assign([name for name, _ in node.outputs], self._expression(node, inputs), indent)

    def _expression(self, node: Node, inputs: list[str]) -> str:
        if node.kind == "prim::CallFunction":
            return f"{function_name(node.attributes['name'])}({', '.join(inputs)})"
        if node.kind == "prim::Fork":
            return f"opscope.fork({', '.join([function_name(node.attributes['name']), *inputs])})"
        if node.kind == "prim::TupleIndex":
            return f"{inputs[0]}[{node.attributes['index']}]"
        return expression(node.kind, inputs)

    def _assign(self, values: Sequence[str], text: str, indent: str) -> None:
        targets = ", ".join(self._define(value) for value in values)
        self._lines.append(f"{indent}{targets} = {text}" if targets else f"{indent}{text}")

    # ---- control flow -------------------------------------------------------------------------

    def _write_if(self, node: Node, indent: str) -> None:
        (condition,) = self._read(node.inputs)
        targets = [self._define(name) for name, _ in node.outputs]
        for heading, block in zip((f"if {condition}:", "else:"), node.blocks, strict=True):
            if heading == "else:" and not block.nodes and not targets:
                continue
            self._lines.append(indent + heading)
            self._write_nodes(block, indent + "    ")
            self._copy(targets, self._read(block.results), indent + "    ")
            if not block.nodes and not targets:
                self._lines.append(f"{indent}    pass")

    def _write_loop(self, node: Node, indent: str) -> None:
        most, condition, *first = self._read(node.inputs)
        (block,) = node.blocks
        (index, _), *carried = block.inputs
        counter = self._define(index)
        variables = [self._define(name) for name, _ in carried]
        self._copy(variables, first, indent)
        is_counted = condition == "True" and self._is_true(block, block.results[0])
        inner = indent + "    "
        if is_counted:
            self._lines.append(f"{indent}for {counter} in range({most}):")
            self._write_nodes(block, inner)
            self._copy(variables, self._read(block.results[1:]), inner)
            if not block.nodes and not variables:
                self._lines.append(f"{inner}pass")
        else:
            goes_on = self._define("goes_on")
            bound = "" if most == _ENDLESS else f" and {counter} < {most}"
            self._lines.append(f"{indent}{counter}, {goes_on} = 0, {condition}")
            self._lines.append(f"{indent}while {goes_on}{bound}:")
            self._write_nodes(block, inner)
            results = self._read(block.results)
            self._copy([goes_on, *variables], results, inner)
            self._lines.append(f"{inner}{counter} += 1")
        for (name, _), variable in zip(node.outputs, variables, strict=True):
            self._expressions[name] = self._define(name)
            self._lines.append(f"{indent}{self._expressions[name]} = {variable}")

    def _is_true(self, block: Block, value: str) -> bool:
        """Whether the value is the constant True, of the block or of one around it."""
        constants = {
            node.output: node.attributes["value"]
            for node in block.nodes
            if node.kind == "prim::Constant"
        }
        return constants.get(value) is True or self._expressions.get(value) == "True"

    def _copy(self, targets: Sequence[str], sources: Sequence[str], indent: str) -> None:
        """All at once: a source may be a target."""
        pairs = [(to, of) for to, of in zip(targets, sources, strict=True) if to != of]
        if pairs:
            left, right = zip(*pairs, strict=True)
            self._lines.append(f"{indent}{', '.join(left)} = {', '.join(right)}")
