"""`CompiledModel`: a model as graphs and tensors, which runs without its Python code."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from opscope._tensor import Graph, Program, Tensor
from opscope.record import texts
from opscope.tensor.jit import archive, recording
from opscope.tensor.jit.parts import ModelParts, Signature
from opscope.tensor.jit.python_code import python_code

_DECISIONS = {"prim::If", "prim::Loop", "py::bool", "py::float", "py::int"}
"""Kinds of nodes by which what runs depends on the elements of tensors."""


class CompiledModel:
    """A model made by `trace`, `script` or `load`; calling it runs its graphs in C.

    >>> model = opscope.tensor.jit.trace(net, x)
    >>> model(x)
    >>> print(model.graph)

    Each call has the label `model_id`, so its operators are attributed to this model. Gradients
    are those of the operators that run, as in Python.

    A model keeps the mode in which it was compiled: `train()` and `eval()` do not exist, because
    what they switch (dropout, the statistics of BatchNorm) was decided when it was compiled.
    """

    def __init__(
        self,
        functions: Mapping[str, str],
        attributes: Mapping[str, Tensor],
        *,
        parameters: Sequence[str] = (),
        name: str = "model",
        signature: Signature | None = None,
        code: Mapping[str, str] | None = None,
        entry: str = "forward",
        model_id: str = "",
    ) -> None:
        """`functions`: the text of each graph by the function's name. Raises ValueError, naming
        function and place, for functions that cannot run."""
        if entry not in functions:
            raise ValueError(f"the model has no function {entry!r}, which a call runs")
        missing = [each for each in parameters if each not in attributes]
        if missing:
            raise ValueError(f"parameters are not among the attributes: {', '.join(missing)}")
        self._graphs = {each: _graph(each, text) for each, text in functions.items()}
        inputs = [each for each, _ in self._graphs[entry].inputs]
        self._parts = ModelParts(
            {each: str(graph) for each, graph in self._graphs.items()},
            dict(attributes),
            tuple(parameters),
            name,
            tuple((each,) for each in inputs) if signature is None else tuple(signature),
            dict(code or {}),
            entry,
            model_id,
        )
        self._signature = _to_inspect(self._parts.signature or ())
        self._arity = len(self._signature.parameters)
        if self._arity != len(inputs):
            raise ValueError(
                f"the signature has {self._arity} parameters, but the function "
                f"{entry!r} takes {len(inputs)} values"
            )
        label = texts.c_text(self.model_id).decode()
        self._program = Program(self._graphs, dict(attributes), entry, model_id=label)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the entry. Raises TypeError for arguments that do not fit its signature."""
        if kwargs or len(args) != self._arity:
            bound = self._signature.bind(*args, **kwargs)
            bound.apply_defaults()
            args = bound.args
        tracing = recording.current()
        if tracing is not None and not _DECISIONS.isdisjoint(self._program.graph.operators()):
            tracing.warn(
                f"the control flow of the compiled model {self.name} is not traced; the graph has "
                "what runs for the examples"
            )
        return self._program(*args)

    # ---- what it consists of ----------------------------------------------------------------

    @property
    def parts(self) -> ModelParts:
        """Graphs, tensors and names, as an archive holds them."""
        return self._parts

    @property
    def name(self) -> str:
        """The name of the function or class that was compiled."""
        return self._parts.name

    @property
    def model_id(self) -> str:
        """The label `model_id` of its calls: from the archive, otherwise the name."""
        return self._parts.model_id or self._parts.name

    @property
    def graph(self) -> Graph:
        """The graph of the entry, a copy; `print` shows it."""
        return self._graphs[self._parts.entry].copy()

    @property
    def inlined_graph(self) -> Graph:
        """The graph of the entry with the functions that it calls inlined, a copy."""
        return self.inlined_graphs()[self._parts.entry]

    def inlined_graphs(self) -> dict[str, Graph]:
        """By name, the entry and what runs as tasks, each with the functions that it calls
        inlined; copies."""
        attributes = dict(self._parts.attributes)
        graphs: dict[str, Graph] = {}
        pending = [self._parts.entry]
        while pending:
            name = pending.pop()
            if name not in graphs:
                graphs[name] = Program(self._graphs, attributes, name, optimize=False).graph
                pending += graphs[name].callees()
        return graphs

    def graph_for(self, *inputs: Any) -> Graph:
        """The inlined graph after all passes, as it runs for inputs that the model takes."""
        self._signature.bind(*inputs)
        return self._program.graph

    @property
    def code(self) -> str:
        """The graphs as Python code, for people; `print` it. It runs with `from opscope import
        tensor`, `import math` and `attributes`."""
        return python_code(self._parts.functions, self._parts.entry)

    @property
    def attributes(self) -> dict[str, Tensor]:
        """All tensors by dotted name, constants that a trace met included."""
        return dict(self._parts.attributes)

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """The attributes that training changes, with their names; each once."""
        seen: set[int] = set()
        for name in self._parts.parameters:
            tensor = self._parts.attributes[name]
            if id(tensor) not in seen:
                seen.add(id(tensor))
                yield name, tensor

    def parameters(self) -> Iterator[Tensor]:
        """The attributes that training changes, for an optimizer."""
        for _, tensor in self.named_parameters():
            yield tensor

    def state_dict(self) -> dict[str, Tensor]:
        """Parameters and buffers by name, without the constants that a trace met; the values share
        their storage."""
        parameters = set(self._parts.parameters)
        return {
            name: tensor.detach()
            for name, tensor in self._parts.attributes.items()
            if name in parameters or not name.startswith("constants.")
        }

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        extra_files: Mapping[str, bytes | str] | None = None,
        model_id: str | None = None,
    ) -> None:
        """`opscope.tensor.jit.save` of this model."""
        archive.write(self._parts, path, extra_files or {}, model_id)

    @classmethod
    def of(cls, parts: ModelParts) -> CompiledModel:
        """The model that consists of these parts."""
        return cls(
            parts.functions,
            parts.attributes,
            parameters=parts.parameters,
            name=parts.name,
            signature=parts.signature,
            code=parts.code,
            entry=parts.entry,
            model_id=parts.model_id,
        )

    def __repr__(self) -> str:
        return f"CompiledModel({self.name}{self._signature})"


def _graph(name: str, text: str) -> Graph:
    try:
        graph = Graph(text)
        graph.verify()
    except ValueError as error:
        raise ValueError(f"function {name!r}: {error}") from None
    return graph


def _to_inspect(signature: Signature) -> inspect.Signature:
    return inspect.Signature(
        [
            inspect.Parameter(
                each[0],
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=each[1] if len(each) == 2 else inspect.Parameter.empty,
            )
            for each in signature
        ]
    )
