"""Archives of `opscope.tensor.save`."""

from __future__ import annotations

from opscope.models.description import Description
from opscope.models.source import PRODUCER, Source, extra_files, producer_of
from opscope.models.walk import tensors_in
from opscope.tensor import archive

FORMAT = "Opscope archive"


def is_one(source: Source) -> bool:
    return source.has(archive.files.MODEL)


def describe(source: Source) -> Description:
    assert source.archive is not None
    extra = extra_files(source.archive)
    return Description(
        FORMAT,
        source.bytes,
        {"version": source.archive.text("version").strip()},
        producer_of(extra.get(PRODUCER)),
        tensors=list(tensors_in(archive.load(source.path))),
        extra=extra,
    )
