"""A request and its answer, independent of the protocol that carries them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from opscope import tensor as ot
from opscope.serving import datatypes
from opscope.serving.faults import bad_request
from opscope.serving.model_config import ModelConfig
from opscope.serving.trace_context import TraceContext

_TIMEOUT = "timeout"


class InferRequest:
    """Inputs in the order of the model's description."""

    __slots__ = ("bytes", "inputs", "key", "outputs", "timeout_ns", "trace")

    def __init__(
        self,
        inputs: Sequence[ot.Tensor],
        outputs: Sequence[str],
        timeout_ns: int | None = None,
        trace: TraceContext | None = None,
        key: Hashable = None,
        size: int | None = None,
    ) -> None:
        """`outputs`: names of those wanted; empty: all. `key` and `size`: computed if missing."""
        self.inputs = inputs
        self.outputs = outputs
        self.timeout_ns = timeout_ns
        self.trace = trace
        self.key = tuple([tuple(one.shape)[1:] for one in inputs]) if key is None else key
        """The shapes without the batch's dimension: equal for requests of one batch."""
        self.bytes = sum([one.numel() * one.itemsize for one in inputs]) if size is None else size


@dataclass(eq=False, slots=True)
class InferReply:
    """Outputs by name, in the order of the request; their elements lie in order."""

    outputs: Mapping[str, ot.Tensor]
    batch_size: int = field(default=1)
    """Rows of the batch that had this request."""


def ordered_inputs(
    config: ModelConfig, given: Sequence[tuple[str, ot.Tensor]]
) -> tuple[ot.Tensor, ...]:
    """The inputs in the order of the description. Raises RequestError if they are not those that
    the model takes."""
    by_name = dict(given)
    if len(by_name) < len(given):
        raise bad_request("two inputs have one name")
    found = []
    for spec in config.inputs:
        tensor = by_name.pop(spec.name, None)
        if tensor is None:
            raise bad_request(f"input {spec.name!r} is missing")
        datatype = datatypes.of(tensor).name
        if datatype != spec.datatype:
            raise bad_request(
                f"input {spec.name!r} is {datatype}, but the model takes {spec.datatype}"
            )
        if not spec.fits(tensor.shape):
            raise bad_request(
                f"input {spec.name!r} has the shape {list(tensor.shape)}, but the model takes "
                f"{list(spec.shape)}"
            )
        found.append(tensor)
    if by_name:
        raise bad_request(f"the model has no input {next(iter(by_name))[:60]!r}")
    if config.is_batched:
        rows = {tensor.shape[0] for tensor in found}
        if len(rows) > 1:
            raise bad_request(f"the inputs have batches of different sizes: {sorted(rows)}")
        (count,) = rows
        if not 0 < count <= config.rule.max_batch_size:
            raise bad_request(
                f"the batch of {count} is not from 1 to {config.rule.max_batch_size}, the model's "
                "greatest"
            )
    return tuple(found)


def wanted_outputs(config: ModelConfig, names: Sequence[str]) -> Sequence[str]:
    """The names, checked. Raises RequestError for one that the model lacks."""
    known = {spec.name for spec in config.outputs}
    for name in names:
        if name not in known:
            raise bad_request(f"the model has no output {name[:60]!r}")
    if len(set(names)) < len(names):
        raise bad_request("an output is wanted twice")
    return names


def timeout_ns(parameters: Mapping[str, object]) -> int | None:
    """Triton's request parameter `timeout`, in microseconds."""
    found = parameters.get(_TIMEOUT)
    if found is None:
        return None
    if type(found) is not int or found <= 0:
        raise bad_request(f"the parameter timeout is {str(found)[:40]}, and no microseconds")
    return 1000 * found
