"""The graph of a trace as it grows: values for the tensors met, nodes for the operators called."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from opscope._tensor import Tensor
from opscope.tensor.jit.nodes import Block, Node
from opscope.tensor.jit.schemas import DTYPES, Parameter, schema_of


class TraceError(RuntimeError):
    """A function cannot be traced, or its trace computes something else; the text says why."""


@dataclass
class _Known:
    """A tensor that the graph has."""

    tensor: Tensor  # kept, so that neither its id nor its memory is used again
    origin: str  # "input", "attribute", "constant" or "computed"
    value: str | None  # None: an attribute that no node has read yet
    wants_grad: bool  # may be on the tape when the graph runs
    memory: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        self.memory = _memory(self.tensor)

    def is_current(self) -> bool:
        """Not so if `out=` or `data` gave the tensor other memory since."""
        return self.memory == _memory(self.tensor)


class GraphBuilder:
    """`attributes`: the tensors of the traced module by their names; grows by `constants.N`."""

    def __init__(self, attributes: dict[str, Tensor]) -> None:
        self.body = Block()
        self.attributes = dict(attributes)
        self._names: dict[int, str] = {}
        self._known: dict[int, _Known] = {}
        self._sharing: dict[int, list[_Known]] = {}
        self._constants: dict[tuple[str, str], str] = {}
        self._count = 0
        for name, tensor in attributes.items():
            if id(tensor) not in self._known:
                self._names[id(tensor)] = name
                self._add(tensor, "attribute", None, tensor.requires_grad)

    # ---- values -----------------------------------------------------------------------------

    def fresh(self) -> str:
        """A name for a further value."""
        self._count += 1
        return str(self._count)

    def add_input(self, tensor: Tensor, value: str) -> None:
        """Makes the tensor this value of the graph. TraceError if the graph has it already."""
        if id(tensor) in self._known:
            raise TraceError(
                f"the example {value!r} is the same tensor as another example or an attribute of "
                "the module; give a clone"
            )
        self._add(tensor, "input", value, tensor.is_floating_point())

    def attributes_behind(self, tensor: Tensor) -> list[Tensor]:
        """The attributes that share memory with the tensor."""
        return [each.tensor for each in self._sharers(tensor) if each.origin == "attribute"]

    def origin_of(self, tensor: Tensor) -> str | None:
        """Where the graph has the tensor from; None for an unknown tensor."""
        known = self._find(tensor)
        return None if known is None else known.origin

    def is_writable(self, tensor: Tensor) -> bool:
        """Whether a write to the tensor's memory is one to an input, an attribute or a result."""
        origins = {each.origin for each in self._sharers(tensor)}
        if "constant" in origins:  # results are views of it
            origins -= {"constant", "computed"}
        return tensor.numel() == 0 or bool(origins)

    def value_of(self, tensor: Tensor) -> str:
        """The value that is the tensor; an unknown one becomes a constant."""
        known = self._find(tensor) or self._meet(tensor)
        if known.value is None:
            known.value = self.fresh()
            self.body.nodes.append(
                Node(
                    "prim::GetAttr",
                    [],
                    [(known.value, "Tensor")],
                    {"name": self._names[id(tensor)]},
                )
            )
        return known.value

    def constant(self, value: object, type: str) -> str:
        """The value of a constant; one for all that are equal."""
        key = type, repr(value)
        if key not in self._constants:
            name = self._constants[key] = self.fresh()
            self.body.nodes.append(Node("prim::Constant", [], [(name, type)], {"value": value}))
        return self._constants[key]

    def _add(self, tensor: Tensor, origin: str, value: str | None, wants_grad: bool) -> _Known:
        known = self._known[id(tensor)] = _Known(tensor, origin, value, wants_grad)
        if tensor.numel() > 0:
            self._sharing.setdefault(tensor._storage_data_ptr(), []).append(known)
        return known

    def _sharers(self, tensor: Tensor) -> list[_Known]:
        if tensor.numel() == 0:
            return []
        found = self._sharing.get(tensor._storage_data_ptr(), [])
        return [each for each in found if each.is_current()]

    def _find(self, tensor: Tensor) -> _Known | None:
        known = self._known.get(id(tensor))
        return known if known is not None and known.is_current() else None

    def _meet(self, tensor: Tensor) -> _Known:
        """A tensor that no recorded operator made: `.data` of a known one, or a constant."""
        sharers = self._sharers(tensor)
        if not sharers or any(each.origin in ("attribute", "constant") for each in sharers):
            names = (f"constants.{number}" for number in itertools.count())
            name = next(name for name in names if name not in self.attributes)
            self.attributes[name] = tensor
            self._names[id(tensor)] = name
            return self._add(tensor, "constant", None, tensor.requires_grad)
        for each in sharers:
            if _geometry(each.tensor) == _geometry(tensor):
                value = self._detached(self.value_of(each.tensor))
                return self._add(tensor, "computed", value, False)
        raise TraceError(
            f"a tensor of shape {tuple(tensor.shape)} shares memory with a value of the trace, but "
            "no operator made it (a buffer or DLPack did): make it by operators"
        )

    # ---- nodes --------------------------------------------------------------------------------

    def add_call(
        self,
        operator: str,
        arguments: Sequence[Any],
        outputs: Sequence[Any],
        *,
        is_into: bool,
        is_detached: bool,
        scope: str | None,
        location: str | None,
    ) -> None:
        """A node for a call that has returned. `is_into`: its outputs were given by `out=`.
        `is_detached`: it ran without grad mode, so its arguments are taken off the tape."""
        schema = schema_of(operator)
        inputs = [
            self._argument(parameter, value, is_detached)
            for parameter, value in zip(schema.parameters, arguments, strict=False)
        ]
        node = Node(operator, inputs, scope=scope, location=location)
        tensors: list[Tensor] = list(outputs[0]) if schema.is_list else list(outputs)
        values = [self.fresh() for _ in tensors]
        defined = [(value, "Tensor") for value in values]
        node.outputs = [(self.fresh(), "List[Tensor]")] if schema.is_list else defined
        self.body.nodes.append(node)
        if schema.is_list:
            self.body.nodes.append(
                Node("prim::ListUnpack", [node.output], defined, scope=scope, location=location)
            )
        for tensor, value in zip(tensors, values, strict=True):
            known = self._find(tensor)
            if known is None:
                wants_grad = not is_detached and tensor.is_floating_point()
                self._add(tensor, "computed", value, wants_grad)
            elif is_into:
                target = [self.value_of(tensor), value]
                copied = Node("core::copy_", target, [(self.fresh(), "Tensor")], scope=scope)
                copied.location = location
                self.body.nodes.append(copied)
            elif not is_detached:  # else it wrote through an alias of the tensor
                known.value = value

    def _argument(self, parameter: Parameter, value: Any, is_detached: bool) -> str:
        if value is None:
            return self.constant(None, "None")
        if isinstance(value, Tensor):
            return self._tensor(value, is_detached)
        if parameter.type == "Tensor[]":
            items = [self._tensor(each, is_detached) for each in value]
            node = Node("prim::ListConstruct", items, [(self.fresh(), "List[Tensor]")])
            self.body.nodes.append(node)
            return node.output
        if isinstance(value, list):
            return self.constant([int(item) for item in value], "List[int]")
        if parameter.type == "dtype":
            return self.constant(DTYPES[int(value)], "Dtype")
        as_declared = {"int": int, "float": float, "bool": bool, "str": str}.get(parameter.type)
        made = value if as_declared is None else as_declared(value)
        return self.constant(made, type(made).__name__)

    def _tensor(self, tensor: Tensor, is_detached: bool) -> str:
        value = self.value_of(tensor)
        if is_detached and self._known[id(tensor)].wants_grad:
            return self._detached(value)
        return value

    def _detached(self, value: str) -> str:
        node = Node("core::detach", [value], [(self.fresh(), "Tensor")])
        self.body.nodes.append(node)
        return node.output


def _memory(tensor: Tensor) -> tuple[Any, ...]:
    return tensor._storage_data_ptr(), tensor.shape


def _geometry(tensor: Tensor) -> tuple[Any, ...]:
    return tensor.dtype, tensor.shape, tensor.strides, tensor.storage_offset()
