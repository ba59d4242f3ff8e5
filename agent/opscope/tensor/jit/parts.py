"""The parts of a compiled model: the content of its archive without extra files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from opscope._tensor import Tensor

Signature = Sequence[tuple[str] | tuple[str, object]]
"""The parameters of the entry in order: a name, and a default if there is one."""


@dataclass(frozen=True)
class ModelParts:
    """The parts of a model. `native/model/GRAPHS.md` says what the functions mean."""

    functions: Mapping[str, str]
    """The text of each function's graph, by the function's name."""
    attributes: Mapping[str, Tensor]
    """Tensors by dotted name."""
    parameters: Sequence[str] = ()
    """Names of the attributes that training changes."""
    name: str = "model"
    signature: Signature | None = None
    """None: parameters as the entry's graph has them."""
    code: Mapping[str, str] = field(default_factory=dict)
    """The source that the functions were made of, by file name, for people."""
    entry: str = "forward"
    """The function that a call of the model runs."""
    model_id: str = ""
    """The label `model_id` of everything that a call runs; empty: none yet."""
