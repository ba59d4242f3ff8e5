"""Files of `torch.save`."""

from __future__ import annotations

from typing import Any

from opscope.models.description import Description, TensorFacts
from opscope.models.source import PRODUCER, Source, extra_files, producer_of
from opscope.models.walk import tensors_in
from opscope.tensor.archive import torch_files

FORMAT = "torch.save"


def is_one(source: Source) -> bool:
    return source.has(torch_files.PICKLE)


def describe(source: Source) -> Description:
    archive = source.archive
    assert archive is not None
    extra = extra_files(archive)
    made = Description(
        FORMAT,
        source.bytes,
        {"version": archive.text("version").strip()} if source.has("version") else {},
        producer_of(extra.get(PRODUCER)),
        extra=extra,
    )
    try:
        made.tensors = list(tensors_in(torch_files.read(archive, Facts(archive))))
    except ValueError as error:
        made.notes.append(str(error).removeprefix(f"{source.path}: "))
    return made


class Facts(torch_files.Reader):
    """Tensors as facts alone, so that every dtype can be shown."""

    def storage(self, key: Any) -> Any:
        match key:
            case ("storage", torch_files.Name() as kind, str(), str(), int()):
                return torch_files.dtype_name(kind)
        raise ValueError(f"a persistent id that torch.save does not write: {key!r:.80}")

    def rebuild(self, what: str, *arguments: Any) -> Any:
        if what.startswith("parameter"):
            return arguments[0]
        dtype, _, sizes, *rest = arguments
        if what == "tensor_v3":
            dtype = str(rest[3]).removeprefix("torch.")
        return TensorFacts("", dtype, tuple(sizes))
