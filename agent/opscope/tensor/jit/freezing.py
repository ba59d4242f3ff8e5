"""`freeze`: turn a compiled model's attributes into constants, and optimize it."""

from __future__ import annotations

from opscope._tensor import Graph
from opscope.record.usage import log_api_usage_once
from opscope.tensor.jit import passes
from opscope.tensor.jit.aliases import written_attributes
from opscope.tensor.jit.compiled import CompiledModel
from opscope.tensor.jit.fold_batch_norm import fold_batch_norm
from opscope.tensor.jit.nodes import from_text, to_text


def freeze(model: CompiledModel) -> CompiledModel:
    """A model that does the same, faster, and is not trained.

    >>> opscope.tensor.jit.freeze(opscope.tensor.jit.trace(net.eval(), x)).save("model.pt")

    Its attributes are constants: it has no parameters, and its results are not on the tape. They
    share the memory of the model's attributes as far as they are not changed. Calls of functions
    are inlined; tasks stay functions. A batch_norm with constant statistics is folded into the
    conv2d before it, which changes results by rounding; equal nodes are merged, and nodes and
    attributes without use removed. What the model writes when it runs stays as it is.
    """
    log_api_usage_once("opscope.tensor.jit.freeze")
    parts = model.parts
    detached = {id(tensor): tensor.detach() for tensor in parts.attributes.values()}
    attributes = {name: detached[id(tensor)] for name, tensor in parts.attributes.items()}
    bodies = {name: from_text(str(graph)) for name, graph in model.inlined_graphs().items()}
    is_fixed = set(attributes) - written_attributes(bodies, attributes)
    for body in bodies.values():
        fold_batch_norm(body, attributes, is_fixed)
    graphs = {name: passes.run(Graph(to_text(body))) for name, body in bodies.items()}
    return CompiledModel(
        {name: str(graph) for name, graph in graphs.items()},
        {name: attributes[name] for graph in graphs.values() for name in graph.attributes()},
        name=parts.name,
        signature=parts.signature,
        code=parts.code,
        entry=parts.entry,
    )
