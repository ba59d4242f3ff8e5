"""`freeze`: a compiled model whose attributes are constants, optimized for running."""

from __future__ import annotations

from opscope._tensor import Graph
from opscope.record.usage import log_api_usage_once
from opscope.tensor.jit.aliases import written_attributes
from opscope.tensor.jit.compiled import CompiledModel
from opscope.tensor.jit.fold_batch_norm import fold_batch_norm
from opscope.tensor.jit.nodes import from_text, to_text

_PASSES = ("merge_equal", "dead_code")


def freeze(model: CompiledModel) -> CompiledModel:
    """A model that does the same, faster, and is not trained.

    >>> opscope.tensor.jit.freeze(opscope.tensor.jit.trace(net.eval(), x)).save("model.pt")

    Its attributes are constants: it has no parameters, and its results are not on the tape. They
    share the memory of the model's attributes as far as they are not changed. A batch_norm with
    constant statistics is folded into the conv2d before it, which changes results by rounding;
    equal nodes are merged, and nodes and attributes without use removed. What the model writes when
    it runs stays as it is.
    """
    log_api_usage_once("opscope.tensor.jit.freeze")
    parts = model.parts
    detached = {id(tensor): tensor.detach() for tensor in parts.attributes.values()}
    attributes = {name: detached[id(tensor)] for name, tensor in parts.attributes.items()}
    bodies = {name: from_text(text) for name, text in parts.functions.items()}
    is_fixed = set(attributes) - written_attributes(list(bodies.values()), attributes)
    functions: dict[str, Graph] = {}
    for name, body in bodies.items():
        fold_batch_norm(body, attributes, is_fixed)
        graph = functions[name] = Graph(to_text(body))
        for each in _PASSES:
            graph.run_pass(each)
    used = {name for graph in functions.values() for name in graph.attributes()}
    return CompiledModel(
        {name: str(graph) for name, graph in functions.items()},
        {name: tensor for name, tensor in attributes.items() if name in used},
        name=parts.name,
        signature=parts.signature,
        code=parts.code,
        entry=parts.entry,
    )
