"""Map the arguments and results of a trace (tensors, lists, tuples) to values of a graph."""

from __future__ import annotations

import warnings
from typing import Any

from opscope._tensor import Tensor
from opscope.tensor.jit import source_lines
from opscope.tensor.jit.graph_builder import GraphBuilder, TraceError
from opscope.tensor.jit.nodes import Node, Value
from opscope.tensor.jit.recording import TracerWarning


def tensors_in(obj: Any) -> list[Tensor]:
    """The tensors of a structure in order."""
    if isinstance(obj, Tensor):
        return [obj]
    if isinstance(obj, list | tuple):
        return [tensor for item in obj for tensor in tensors_in(item)]
    return []


def add_example(builder: GraphBuilder, example: Any, name: str) -> None:
    """Makes the example an input of the graph."""
    builder.body.inputs.append((name, _type_of(example, name)))
    _unpack(builder, example, name)


def _type_of(example: Any, name: str) -> str:
    if isinstance(example, Tensor):
        return "Tensor"
    if isinstance(example, list) and all(isinstance(item, Tensor) for item in example):
        return "List[Tensor]"
    if isinstance(example, tuple):
        return f"Tuple[{', '.join(_type_of(item, name) for item in example)}]"
    raise TypeError(
        f"trace(): the example {name!r} is or contains a {type(example).__name__}; examples are "
        "tensors, lists of tensors and tuples of these, because any other value would be a "
        "constant of the graph: bind it with functools.partial"
    )


def _unpack(builder: GraphBuilder, example: Any, value: str) -> None:
    if isinstance(example, Tensor):
        builder.add_input(example, value)
        return
    items: list[Value] = [(builder.fresh(), _type_of(item, value)) for item in example]
    kind = "prim::ListUnpack" if isinstance(example, list) else "prim::TupleUnpack"
    builder.body.nodes.append(Node(kind, [value], items))
    for item, (name, _) in zip(example, items, strict=True):
        _unpack(builder, item, name)


def add_result(builder: GraphBuilder, result: Any) -> None:
    """Makes what the function returned the result of the graph."""
    value, _ = _value_of(builder, result, "the result")
    builder.body.results = [value]


def _value_of(builder: GraphBuilder, result: Any, place: str) -> Value:
    if isinstance(result, Tensor):
        return builder.value_of(result), "Tensor"
    if result is None:
        return builder.constant(None, "None"), "None"
    if isinstance(result, bool | int | float | str):
        file, line = source_lines.line() or ("<unknown>", 0)
        warnings.warn_explicit(
            f"{place} is the {type(result).__name__} {result!r}: a constant of the graph",
            TracerWarning,
            file,
            line,
        )
        type_name = next(t.__name__ for t in (bool, int, float, str) if isinstance(result, t))
        return builder.constant(result, type_name), type_name
    if isinstance(result, list | tuple):
        return _sequence(builder, result, place)
    raise TraceError(
        f"{place} is a {type(result).__name__}; a traced function returns tensors, and tuples and "
        "lists of them"
    )


def _sequence(builder: GraphBuilder, result: list[Any] | tuple[Any, ...], place: str) -> Value:
    parts = [_value_of(builder, item, f"{place}[{index}]") for index, item in enumerate(result)]
    types = [type for _, type in parts]
    if isinstance(result, list) and (not types or set(types) != {types[0]}):
        raise TraceError(
            f"{place} is a list of {', '.join(sorted(set(types))) or 'nothing'}; a list holds "
            "values of one type: return a tuple"
        )
    made = f"List[{types[0]}]" if isinstance(result, list) else f"Tuple[{', '.join(types)}]"
    kind = "prim::ListConstruct" if isinstance(result, list) else "prim::TupleConstruct"
    node = Node(kind, [name for name, _ in parts], [(builder.fresh(), made)])
    builder.body.nodes.append(node)
    return node.output, made
