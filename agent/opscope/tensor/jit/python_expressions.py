"""Write one node as Python: as an expression or as a statement."""

from __future__ import annotations

import builtins
import json
import math
from collections.abc import Sequence
from typing import Any

from opscope import _tensor
from opscope._tensor import operators
from opscope.tensor.jit.schemas import schema_of

EXPRESSIONS = {
    "py::add": "{} + {}",
    "py::sub": "{} - {}",
    "py::mul": "{} * {}",
    "py::truediv": "{} / {}",
    "py::floordiv": "{} // {}",
    "py::mod": "{} % {}",
    "py::pow": "{} ** {}",
    "py::and": "{} & {}",
    "py::or": "{} | {}",
    "py::xor": "{} ^ {}",
    "py::lshift": "{} << {}",
    "py::rshift": "{} >> {}",
    "py::eq": "{} == {}",
    "py::ne": "{} != {}",
    "py::lt": "{} < {}",
    "py::le": "{} <= {}",
    "py::gt": "{} > {}",
    "py::ge": "{} >= {}",
    "py::neg": "-{}",
    "py::not": "not {}",
    "py::invert": "~{}",
    "py::floor": "math.floor({})",
    "py::ceil": "math.ceil({})",
    "py::sqrt": "math.sqrt({})",
    "py::exp": "math.exp({})",
    "py::log": "math.log({})",
    "py::getitem": "{}[{}]",
    "py::slice": "{}[{}:{}:{}]",
    "py::contains": "{1} in {0}",
    "py::copy": "list({})",
    "py::range": "list(range({}, {}, {}))",
    "py::is_none": "{} is None",
    "py::dim": "{}.dim()",
    "py::numel": "{}.numel()",
    "py::dtype": "{}.dtype",
    "py::pop": "{}.pop({})",
    "prim::Unwrap": "{}",
    "prim::Wait": "opscope.wait({})",
}
"""Those of a fixed number of inputs."""
STATEMENTS = {
    "py::setitem": "{}[{}] = {}",
    "py::append": "{}.append({})",
    "py::extend": "{}.extend({})",
    "py::insert": "{}.insert({}, {})",
    "py::reverse": "{}.reverse()",
    "py::clear": "{}.clear()",
}
USED_NAMES = {"tensor", "math", "attributes", "list", "range", "print"} | {
    *("int", "float", "bool", "str", "abs", "min", "max", "round", "len")
}
"""Names that the code uses, and so gives to no variable."""


INLINED = {
    kind
    for kind in EXPRESSIONS
    if kind not in ("py::getitem", "py::slice", "py::contains", "py::copy", "py::pop")
} | {"prim::ListConstruct", "prim::TupleConstruct", "prim::TupleIndex", "py::str"}
"""Those whose value does not depend on when they are computed: of numbers and other values that
never change, and of shapes."""


class Compound(str):
    """An expression that needs parentheses inside another one."""


def literal(value: Any, type: str) -> str:
    """A constant of that type."""
    if type == "Dtype":
        return f"tensor.{value}"
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    if isinstance(value, list):
        return f"[{', '.join(literal(item, '') for item in value)}]"
    text = repr(value)
    return Compound(text) if text.startswith("-") else text


def expression(kind: str, inputs: Sequence[str]) -> str:
    """The expression of a node with these inputs."""
    joined = ", ".join(inputs)
    if kind in EXPRESSIONS:
        parts = (f"({each})" if isinstance(each, Compound) else each for each in inputs)
        text = EXPRESSIONS[kind].format(*parts)
        return Compound(text) if " " in EXPRESSIONS[kind] or text[0] in "-~" else text
    if kind == "prim::ListConstruct":
        return f"[{joined}]"
    if kind == "prim::TupleConstruct":
        return f"({joined},)" if len(inputs) == 1 else f"({joined})"
    if kind == "py::size":
        return f"list({joined}.shape)" if len(inputs) == 1 else f"{inputs[0]}.size({inputs[1]})"
    if kind == "py::tensor":
        return f"tensor.tensor({inputs[0]}, dtype={inputs[1] if len(inputs) > 1 else None})"
    namespace, _, name = kind.partition("::")
    if namespace == "py":
        return f"{name}({joined})"
    return _call(kind, name, inputs)


def _call(kind: str, name: str, inputs: Sequence[str]) -> str:
    """A call of an operator, by its function in opscope.tensor if it has one."""
    given = list(inputs)
    if kind in operators:
        parameters = schema_of(kind).parameters
        for index, (parameter, value) in enumerate(zip(parameters, inputs, strict=False)):
            given[index] = f"{parameter.name}={value}" if parameter.is_keyword else value
    is_function = kind.startswith("core::") and name in _tensor.functions
    called = f"tensor.{name}" if is_function else f"tensor.operators[{json.dumps(kind)}]"
    return f"{called}({', '.join(given)})"


def raise_statement(text: str, kind: str) -> str:
    """`raise` with an exception of the class that the text `kind` begins with."""
    name = kind.strip('"').partition(":")[0]
    found = getattr(builtins, name, None)
    is_class = isinstance(found, type) and issubclass(found, Exception)
    return f"raise {name if is_class else 'RuntimeError'}({text})"
