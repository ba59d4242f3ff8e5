"""What a model's file does not say and a server has to know: datatypes, shapes, how to batch.

It is JSON: the extra file `serving.json` of the model's archive, or the file `ARCHIVE.json` beside
it, which comes first, and which an archive of torch.jit.save needs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from opscope import tensor as ot
from opscope.errors import OpscopeError
from opscope.serving import datatypes
from opscope.serving.batcher import Rule
from opscope.serving.faults import RequestError

EXTRA_FILE = "serving.json"
_ANY = -1
_SIZE_LIMIT = 1 << 31
_DEFAULT = Rule()


@dataclass(frozen=True)
class TensorSpec:
    """An input or output."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    """-1: any size. The first is the batch's, if the model is batched."""

    def fits(self, shape: Sequence[int]) -> bool:
        """Whether a tensor of these sizes may be this one."""
        return len(shape) == len(self.shape) and all(
            want in (_ANY, size) for want, size in zip(self.shape, shape, strict=True)
        )


@dataclass(frozen=True)
class ModelConfig:
    """A model as it is served."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    rule: Rule = field(default_factory=Rule)
    instances: int = 1
    """Threads that run the model."""
    platform: str = "opscope_graph"

    @property
    def is_batched(self) -> bool:
        """Whether the first dimension of all tensors counts requests."""
        return self.rule.max_batch_size > 0

    def to_json(self) -> str:
        """The text that `parse` reads."""
        rule = self.rule
        document = {
            "inputs": [_spec_to_json(one) for one in self.inputs],
            "outputs": [_spec_to_json(one) for one in self.outputs],
            "max_batch_size": rule.max_batch_size,
            "preferred_batch_sizes": list(rule.preferred_batch_sizes),
            "max_queue_delay_microseconds": rule.max_queue_delay_ns // 1000,
            "max_queue_size": rule.max_queue_size,
            "max_queue_bytes": rule.max_queue_bytes,
            "default_timeout_microseconds": rule.default_timeout_ns // 1000,
            "instances": self.instances,
            "platform": self.platform,
        }
        return json.dumps(document, indent=1) + "\n"


def parse(text: str, default_platform: str = "opscope_graph") -> ModelConfig:
    """Raises ValueError for a text that describes no model."""
    document = json.loads(text)
    if not isinstance(document, dict):
        raise ValueError("the description of a model is a JSON object")
    fields = dict(document)

    def take(name: str, default: int, least: int = 0) -> int:
        value = fields.pop(name, default)
        if type(value) is not int or not least <= value < _SIZE_LIMIT:
            raise ValueError(f"{name} is {value!r}, and no integer from {least} on")
        return value

    inputs = _specs(fields.pop("inputs", None), "inputs")
    outputs = _specs(fields.pop("outputs", None), "outputs")
    preferred = fields.pop("preferred_batch_sizes", [])
    greatest = take("max_batch_size", 0)
    if not isinstance(preferred, list) or not all(
        type(one) is int and 0 < one <= greatest for one in preferred
    ):
        raise ValueError(f"preferred_batch_sizes are {preferred!r}, and no sizes of a batch")
    rule = Rule(
        greatest,
        tuple(sorted(set(preferred))),
        1000 * take("max_queue_delay_microseconds", 0),
        take("max_queue_size", _DEFAULT.max_queue_size, 1),
        take("max_queue_bytes", _DEFAULT.max_queue_bytes, 1),
        1000 * take("default_timeout_microseconds", 0),
    )
    platform = fields.pop("platform", default_platform)
    if not isinstance(platform, str):
        raise ValueError("platform is no string")
    config = ModelConfig(inputs, outputs, rule, take("instances", 1, 1), platform)
    if fields:
        raise ValueError(f"unknown: {', '.join(sorted(fields))}")
    for one in (*inputs, *outputs):
        if config.is_batched and (not one.shape or one.shape[0] != _ANY):
            raise ValueError(f"{one.name!r} has no first dimension -1, for batches")
    return config


def describe(
    model: Callable[..., Any],
    examples: Sequence[Any],
    *,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    rule: Rule | None = None,
    instances: int = 1,
) -> ModelConfig:
    """The description of a model, from one run with examples.

    >>> config = describe(model, [images], rule=Rule(max_batch_size=32))
    >>> opscope.tensor.jit.save(model, "net.pt", extra_files={"serving.json": config.to_json()})

    With a rule that batches, the first dimension of each tensor becomes -1. Inputs are named
    `input0`, `input1` and so on, and outputs `output0`.
    """
    rule = rule or Rule()
    with ot.no_grad():
        made = model(*examples)
    outputs = made if isinstance(made, tuple) else (made,)

    def specs(tensors: Sequence[Any], names: Sequence[str] | None, kind: str) -> Any:
        names = names or [f"{kind}{number}" for number in range(len(tensors))]
        return tuple(
            TensorSpec(
                name,
                datatypes.of(tensor).name,
                (_ANY, *tensor.shape[1:]) if rule.max_batch_size else tuple(tensor.shape),
            )
            for name, tensor in zip(names, tensors, strict=True)
        )

    return ModelConfig(
        specs(examples, input_names, "input"),
        specs(outputs, output_names, "output"),
        rule,
        instances,
    )


def beside(archive: str) -> str | None:
    """The text of `ARCHIVE.json`, or None. Raises OpscopeError if it cannot be read."""
    try:
        with open(f"{archive}.json", encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise OpscopeError(f"{archive}.json: {error}") from None


def _spec_to_json(one: TensorSpec) -> dict[str, object]:
    return {"name": one.name, "datatype": one.datatype, "shape": list(one.shape)}


def _specs(found: object, what: str) -> tuple[TensorSpec, ...]:
    if not isinstance(found, list) or not found:
        raise ValueError(f"{what} is no list of tensors")
    specs = tuple(_spec(one, what) for one in found)
    if len({one.name for one in specs}) < len(specs):
        raise ValueError(f"two of {what} have one name")
    return specs


def _spec(found: object, what: str) -> TensorSpec:
    if not isinstance(found, Mapping) or set(found) != {"name", "datatype", "shape"}:
        raise ValueError(f"one of {what} is not described by name, datatype and shape")
    name, datatype, shape = found["name"], found["datatype"], found["shape"]
    if not isinstance(name, str) or not name:
        raise ValueError(f"one of {what} has no name")
    if not isinstance(shape, list) or not all(
        type(size) is int and _ANY <= size < _SIZE_LIMIT for size in shape
    ):
        raise ValueError(f"the shape of {name!r} is no list of sizes, or -1 for any")
    try:
        datatypes.named(str(datatype))
    except RequestError as fault:
        raise ValueError(f"{name!r}: {fault}") from None
    return TensorSpec(name, str(datatype), tuple(shape))
