"""Archives of `torch.export.save` (`.pt2`): the layouts of PyTorch 2.4 to 2.7, 2.8, and 2.9 on.

The last describes its tensors in JSON documents of their own; of the others, the program tells
them: it names the tensors that are its inputs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from opscope.models.description import Description, TensorFacts
from opscope.models.source import PRODUCER, Source, extra_files, producer_of
from opscope.tensor.archive.files import Archive

FORMAT = "torch.export"

_OLDER_PROGRAM = "serialized_exported_program.json"
_OLDER_EXTRA = "extra_files/"
_STORED = ("parameter", "buffer", "tensor_constant")
"""The kinds of inputs that the archive holds: fields of the schema's InputSpec."""
_CONFIGS = ("_weights_config.json", "_constants_config.json")
_OPS = "torch.ops."
_FOREIGN = "not laid out as torch.export writes it"
_FAULTS = (KeyError, TypeError, AttributeError, ValueError, OverflowError)
"""What a document of another layout raises here."""
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
    return source.has("archive_format") or source.has(_OLDER_PROGRAM)


def describe(source: Source) -> Description:
    archive = source.archive
    assert archive is not None
    if source.has(_OLDER_PROGRAM):
        return _describe_older(source, archive)
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
    has_configs = any(name.endswith(_CONFIGS) for name in archive.entries)
    for name in archive.entries:
        if name.startswith("models/") and name.endswith(".json"):
            program = archive.json(name)
            try:
                made.operators += _operators(program)
                made.facts["torch_version"] = str(program.get("torch_version", ""))
                if not has_configs:
                    made.tensors += _inputs(program["graph_module"])
            except _FAULTS:
                raise archive.fault(name, _FOREIGN) from None
        elif name.endswith(_CONFIGS):
            document = archive.json(name)
            try:
                made.tensors += _tensors(document["config"])
            except _FAULTS:
                raise archive.fault(name, _FOREIGN) from None
    return made


def _describe_older(source: Source, archive: Archive) -> Description:
    extra = {
        name.removeprefix(_OLDER_EXTRA): archive.read(name)
        for name in archive.entries
        if name.startswith(_OLDER_EXTRA)
    }
    made = Description(FORMAT, source.bytes, {}, producer_of(extra.get(PRODUCER)), extra=extra)
    if source.has("version"):
        made.facts["schema_version"] = archive.text("version").strip()
    program = archive.json(_OLDER_PROGRAM)
    try:
        made.operators = _operators(program)
        made.tensors = list(_inputs(program["graph_module"]))
        if "torch_version" in program:
            made.facts["torch_version"] = str(program["torch_version"])
    except _FAULTS:
        raise archive.fault(_OLDER_PROGRAM, _FOREIGN) from None
    return made


def _inputs(graph_module: Any) -> Iterator[TensorFacts]:
    """The program's inputs that the archive holds."""
    values = graph_module["graph"]["tensor_values"]
    for spec in graph_module["signature"]["input_specs"]:
        for kind in _STORED:
            if kind in spec:
                about = spec[kind]
                name = str(about[f"{kind}_name"])
                yield _tensor(name, values[about["arg"]["name"]])


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
            found.append(_tensor(str(name), about))
    return found


def _tensor(name: str, about: Any) -> TensorFacts:
    """Of a TensorMeta of the schema."""
    shape = tuple(int(size["as_int"]) for size in about["sizes"])
    return TensorFacts(name, _DTYPES.get(about["dtype"], str(about["dtype"])), shape)
