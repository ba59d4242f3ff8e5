"""Archives of `opscope.tensor.save` and `opscope.tensor.jit.save`."""

from __future__ import annotations

from opscope._tensor import Graph
from opscope.models.description import Description
from opscope.models.source import PRODUCER, Source, extra_files, producer_of
from opscope.models.walk import tensors_in
from opscope.tensor import archive
from opscope.tensor.archive.files import Archive
from opscope.tensor.jit import archive as jit_archive

FORMAT = "Opscope archive"


def is_one(source: Source) -> bool:
    return source.has(archive.files.MODEL)


def describe(source: Source) -> Description:
    assert source.archive is not None
    extra = extra_files(source.archive)
    made = Description(
        FORMAT,
        source.bytes,
        {"version": source.archive.text("version").strip()},
        producer_of(extra.get(PRODUCER)),
        extra=extra,
    )
    if jit_archive.is_model(source.archive):
        _describe_model(source.archive, made)
    else:
        made.tensors = list(tensors_in(archive.load(source.path)))
    return made


def _describe_model(opened: Archive, made: Description) -> None:
    parts = jit_archive.read(opened)
    made.facts |= {
        "model": parts.name,
        "id": parts.model_id,
        "parameters": f"{len(parts.parameters)} of {len(parts.attributes)} tensors",
    }
    made.functions = list(parts.functions)
    for text in parts.functions.values():
        for kind, calls in Graph(text).operators().items():
            if not kind.startswith("prim::"):
                made.operators[kind] += calls
    made.tensors = list(tensors_in(dict(parts.attributes)))
