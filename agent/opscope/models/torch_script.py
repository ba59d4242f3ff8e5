"""TorchScript archives: what `torch.jit.save` writes."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from opscope.models.description import Description
from opscope.models.source import PRODUCER, Source, extra_files, producer_of
from opscope.models.torch_save import Facts
from opscope.models.walk import tensors_in
from opscope.tensor.archive import torch_files

FORMAT = "TorchScript"

_CODE = "code/"
_CALL = re.compile(r"\b(?:torch|ops\.(\w+))\.(_?[a-z]\w*)\(")
"""`torch.add(...)` is of aten, `ops.prim.data(...)` of prim."""


_CLASSES = ("__torch__.", "torch.jit._pickle.")


class _Attributes(Facts):
    """Modules as dicts of their attributes."""

    def call(self, name: str, arguments: tuple[Any, ...], state: Any, pairs: dict[Any, Any]) -> Any:
        if name.startswith(_CLASSES):
            return state if state is not None else list(arguments)
        return super().call(name, arguments, state, pairs)


def is_one(source: Source) -> bool:
    return source.has("constants.pkl") and source.has("data.pkl")


def describe(source: Source) -> Description:
    archive = source.archive
    assert archive is not None
    extra = extra_files(archive)
    operators: Counter[str] = Counter()
    for name in archive.entries:
        if name.startswith(_CODE) and name.endswith(".py"):
            for namespace, operator in _CALL.findall(archive.text(name)):
                operators[f"{namespace or 'aten'}::{operator}"] += 1
    made = Description(
        FORMAT,
        source.bytes,
        {"version": archive.text("version").strip()} if source.has("version") else {},
        producer_of(extra.get(PRODUCER)),
        operators,
        extra=extra,
    )
    try:
        made.tensors = list(tensors_in(torch_files.read(archive, _Attributes(archive), _CLASSES)))
    except ValueError as error:
        made.notes.append(str(error).removeprefix(f"{source.path}: "))
    return made
