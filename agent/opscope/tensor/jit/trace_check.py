"""Check that a traced graph gives the same results as the function, on the examples."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from opscope._tensor import Tensor
from opscope.tensor.autograd import no_grad
from opscope.tensor.jit.compiled import CompiledModel
from opscope.tensor.jit.graph_builder import TraceError
from opscope.tensor.jit.nodes import Block, Node
from opscope.tensor.jit.recording import TracerWarning
from opscope.tensor.jit.schemas import schema_of
from opscope.tensor.jit.state import State
from opscope.tensor.jit.structures import tensors_in

_RANDOM = {
    "core::bernoulli",
    "core::dropout",
    "core::native_dropout",
    "core::normal",
    "core::rand",
    "core::rand_like",
    "core::randint",
    "core::randn",
    "core::randn_like",
    "core::randperm",
    "core::scaled_dot_product_attention",
    "core::uniform",
}
_TOLERANCES = {"float64": (1e-9, 1e-9), "float32": (1e-5, 1e-5)}
_TOLERANCE_OF_HALF = (1e-2, 1e-2)


class Expected:
    """What a call of the function returned and wrote; copies of it."""

    def __init__(self, result: Any, state: State) -> None:
        self._results = [_Copy(tensor) for tensor in tensors_in(result)]
        self._written = [(tensor, _Copy(tensor)) for tensor in state.written()]

    def compare(
        self, model: CompiledModel, examples: Sequence[Any], state: State, body: Block
    ) -> None:
        """Runs the model on the examples. TraceError names the first tensor that differs."""
        random = _random_operators(body)
        state.restore()
        results = tensors_in(model(*examples))
        if len(results) != len(self._results):
            raise TraceError(
                f"trace of {model.name}: the graph returns {len(results)} tensors, the function "
                f"{len(self._results)}"
            )
        pairs = [
            (f"output {index}", copy, actual)
            for index, (copy, actual) in enumerate(zip(self._results, results, strict=True))
        ]
        pairs += [
            (f"written tensor {index} of shape {tuple(tensor.shape)}", copy, tensor)
            for index, (tensor, copy) in enumerate(self._written)
        ]
        for what, copy, actual in pairs:
            reason = copy.difference(actual, ignores_elements=bool(random))
            if reason is not None:
                raise TraceError(
                    f"trace of {model.name}: {what} of the graph differs from the function's: "
                    f"{reason}. The function computes something that the graph does not have: it "
                    "uses Python values of tensors, state that changes with each call, or its own "
                    "backward"
                )
        if random:
            warnings.warn(
                f"trace of {model.name}: elements are not compared, because the graph draws "
                f"random numbers ({', '.join(random)})",
                TracerWarning,
                stacklevel=4,
            )


def _random_operators(body: Block) -> list[str]:
    """The operators that draw random numbers, each once."""
    constants = {
        node.output: node.attributes["value"]
        for node in body.nodes
        if node.kind == "prim::Constant"
    }

    def is_random(node: Node) -> bool:
        if node.kind.removesuffix("_") not in _RANDOM:
            return False
        given = [constants.get(name) for name in node.inputs]
        arguments = dict(
            zip((each.name for each in schema_of(node.kind).parameters), given, strict=False)
        )
        rate = arguments.get("p", arguments.get("dropout_p"))
        return arguments.get("training") is not False and rate != 0.0

    return sorted({node.kind for node in body.all_nodes() if is_random(node)})


class _Copy:
    """The elements of a tensor, and whether it is on the tape."""

    def __init__(self, tensor: Tensor) -> None:
        self._elements = tensor.detach().clone()
        self._requires_grad = tensor.requires_grad

    def difference(self, actual: Tensor, ignores_elements: bool) -> str | None:
        """How `actual` differs; None: not at all."""
        expected = self._elements
        if (actual.dtype, actual.shape) != (expected.dtype, expected.shape):
            return (
                f"{actual.dtype.name} of shape {tuple(actual.shape)} instead of "
                f"{expected.dtype.name} of shape {tuple(expected.shape)}"
            )
        if actual.requires_grad != self._requires_grad:
            return "requires_grad" if self._requires_grad else "no requires_grad"
        if ignores_elements:
            return None
        with no_grad():
            wrong = _far(actual.detach(), expected)
            count = int(wrong.sum())
        return f"{count} of {expected.numel()} elements" if count else None


def _far(actual: Tensor, expected: Tensor) -> Tensor:
    """True for each element that differs by more than rounding."""
    if not expected.is_floating_point():
        return actual.ne(expected)
    if expected.dtype.itemsize < 4:
        relative, absolute = _TOLERANCE_OF_HALF
        actual, expected = actual.float(), expected.float()
    else:
        relative, absolute = _TOLERANCES[expected.dtype.name]
    return actual.isclose(expected, relative, absolute, True).logical_not()
