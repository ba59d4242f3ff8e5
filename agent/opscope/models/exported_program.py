"""Archives of `torch.export.save` (`.pt2`): the layout of PyTorch 2.13."""

from __future__ import annotations

from collections import Counter
from typing import Any

from opscope.models.description import Description, TensorFacts
from opscope.models.source import PRODUCER, Source, extra_files, producer_of

FORMAT = "torch.export"

_OPS = "torch.ops."
_DTYPES = {
    1: "uint8",
    2: "int8",
    3: "int16",
    4: "int32",
    5: "int64",
    6: "float16",
    7: "float32",
    8: "float64",
    12: "bool",
    13: "bfloat16",
}
"""torch/_export/serde/schema.py, ScalarType."""


def is_one(source: Source) -> bool:
    return source.has("archive_format")


def describe(source: Source) -> Description:
    archive = source.archive
    assert archive is not None
    extra = extra_files(archive)
    made = Description(
        FORMAT,
        source.bytes,
        {"archive_version": archive.text("archive_version").strip()}
        if source.has("archive_version")
        else {},
        producer_of(extra.get(PRODUCER)),
        extra=extra,
    )
    for name in archive.entries:
        if name.startswith("models/") and name.endswith(".json"):
            program = archive.json(name)
            try:
                made.operators += _operators(program)
                made.facts["torch_version"] = str(program.get("torch_version", ""))
            except (KeyError, TypeError, AttributeError):
                raise archive.fault(name, "not laid out as torch.export writes it") from None
        elif name.endswith(("_weights_config.json", "_constants_config.json")):
            try:
                made.tensors += _tensors(archive.json(name)["config"])
            except (KeyError, TypeError, AttributeError):
                raise archive.fault(name, "not laid out as torch.export writes it") from None
    return made


def _operators(program: Any) -> Counter[str]:
    found: Counter[str] = Counter()
    for node in program["graph_module"]["graph"]["nodes"]:
        target = str(node["target"])
        if target.startswith(_OPS):
            namespace, name, *_ = target.removeprefix(_OPS).split(".")
            found[f"{namespace}::{name}"] += 1
    return found


def _tensors(config: Any) -> list[TensorFacts]:
    found = []
    for name, entry in config.items():
        about = entry.get("tensor_meta")
        if about:
            shape = tuple(int(size["as_int"]) for size in about["sizes"])
            dtype = _DTYPES.get(about["dtype"], str(about["dtype"]))
            found.append(TensorFacts(str(name), dtype, shape))
    return found
