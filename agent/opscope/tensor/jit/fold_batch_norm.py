"""Folding: a batch_norm with constant statistics becomes part of the conv2d before it.

conv2d(x, w, b) is normalized channel by channel to (conv2d(x, w, b) - mean) * scale + shift, where
scale is weight / sqrt(variance + eps). That is conv2d(x, w * scale, (b - mean) * scale + shift).
"""

from __future__ import annotations

from collections.abc import Collection

from opscope._tensor import Tensor
from opscope.tensor.autograd import no_grad
from opscope.tensor.jit.nodes import Block, Node


def fold_batch_norm(body: Block, attributes: dict[str, Tensor], is_fixed: Collection[str]) -> int:
    """Folds where all tensors but the input are attributes of `is_fixed`, which those that training
    updates are not, and the result of conv2d has no other use.

    Adds the new weights to `attributes`; returns how many nodes it removed.
    """
    return _Pass(body, attributes, is_fixed).run(body)


_OF_SHAPE = ("py::dim", "py::dtype", "py::len", "py::numel", "py::size")


class _NotFixedError(Exception):
    """A value is not known before the model runs."""


class _Pass:
    def __init__(
        self, body: Block, attributes: dict[str, Tensor], is_fixed: Collection[str]
    ) -> None:
        self._attributes = attributes
        self._is_fixed = is_fixed
        nodes = list(body.all_nodes())
        self._producers = {name: node for node in nodes for name, _ in node.outputs}
        # The norm keeps the shape, so what asks for it may as well ask the norm's result.
        self._shape_users = [node for node in nodes if node.kind in _OF_SHAPE]
        self._uses = body.uses()
        self._uses.subtract(name for node in self._shape_users for name in node.inputs[:1])
        self._fresh = (f"folded.{number}" for number in range(len(nodes) * 4))

    def run(self, block: Block) -> int:
        count = 0
        for node in list(block.nodes):
            count += sum(self.run(inner) for inner in node.blocks)
            convolution = self._convolution_before(node, block)
            if convolution is not None and self._fold(block, convolution, node):
                count += 1
        return count

    def _convolution_before(self, node: Node, block: Block) -> Node | None:
        """The conv2d whose result the node normalizes; None if there is none to fold into."""
        if node.kind != "core::batch_norm" or len(node.inputs) < 5:
            return None
        found = self._producers.get(node.inputs[0])
        is_convolution = found is not None and found.kind == "core::conv2d"
        is_here = any(each is found for each in block.nodes)
        is_alone = self._uses[node.inputs[0]] == 1
        return found if is_convolution and is_here and is_alone else None

    def _fold(self, block: Block, convolution: Node, norm: Node) -> bool:
        if len(convolution.inputs) < 3:
            return False
        try:
            weight, bias = map(self._tensor, convolution.inputs[1:3])
            gain, shift, mean, variance = map(self._tensor, norm.inputs[1:5])
            eps = self._constant(norm.inputs[7]) if len(norm.inputs) > 7 else 1e-5
        except _NotFixedError:
            return False
        if weight is None or mean is None or variance is None or not isinstance(eps, float):
            return False
        with no_grad():
            scale = (variance + eps).rsqrt()
            scale = scale if gain is None else scale * gain
            offset = (mean.neg() if bias is None else bias - mean) * scale
            offset = offset if shift is None else offset + shift
            weight = weight * scale.reshape((-1, *(1 for _ in weight.shape[1:])))
        convolution.inputs[1:3] = [
            self._add(block, convolution, tensor) for tensor in (weight, offset)
        ]
        for node in self._shape_users:
            node.inputs = [
                norm.output if name == convolution.output else name for name in node.inputs
            ]
        convolution.outputs = norm.outputs
        block.nodes[:] = [each for each in block.nodes if each is not norm]
        return True

    def _add(self, block: Block, place: Node, tensor: Tensor) -> str:
        """An attribute with the tensor, and a value that reads it."""
        value = next(name for name in self._fresh if name not in self._attributes)
        self._attributes[value] = tensor
        node = Node("prim::GetAttr", [], [(value, "Tensor")], {"name": value})
        at = next(index for index, each in enumerate(block.nodes) if each is place)
        block.nodes.insert(at, node)
        return value

    def _constant(self, value: str) -> object:
        node = self._producers.get(value)
        if node is None or node.kind != "prim::Constant":
            raise _NotFixedError
        constant: object = node.attributes["value"]
        return constant

    def _tensor(self, value: str) -> Tensor | None:
        """A fixed attribute, or a constant None."""
        node = self._producers.get(value)
        if node is not None and node.kind == "prim::GetAttr":
            name = node.attributes["name"]
            if name in self._is_fixed:
                return self._attributes[name]
        elif self._constant(value) is None:
            return None
        raise _NotFixedError
