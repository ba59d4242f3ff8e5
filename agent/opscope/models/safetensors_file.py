"""Files of safetensors, from their header alone.

The header is a JSON object behind its length; the format is described in the README of
huggingface/safetensors.
"""

from __future__ import annotations

import json

from opscope.models.description import Description, TensorFacts
from opscope.models.source import PRODUCER, Source, producer_of
from opscope.tensor.archive import safetensors

FORMAT = "safetensors"

_DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U64": "uint64",
    "U32": "uint32",
    "U16": "uint16",
    "U8": "uint8",
    "BOOL": "bool",
    "C64": "complex64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
}


def is_one(source: Source) -> bool:
    return safetensors.is_one(source.path)


def describe(source: Source) -> Description:
    length = int.from_bytes(source.start[:8], "little")
    if length > source.bytes - 8:
        raise ValueError(f"its header of {length} bytes is longer than the file")
    with open(source.path, "rb") as file:
        file.seek(8)
        header = json.loads(file.read(length))
    texts = header.pop("__metadata__", {})
    if not isinstance(texts, dict):
        raise ValueError("its __metadata__ is not an object")
    tensors = []
    for name, about in header.items():
        try:
            first, end = about["data_offsets"]
            shape = tuple(map(int, about["shape"]))
            dtype = str(about["dtype"])
        except (KeyError, TypeError, ValueError):
            raise ValueError(f'tensor "{name}" is not described as the format wants it') from None
        if not 0 <= first <= end <= source.bytes - 8 - length:
            raise ValueError(f'tensor "{name}" lies outside of the file')
        tensors.append(TensorFacts(name, _DTYPES.get(dtype, dtype), shape))
    extra = {str(name): str(text).encode() for name, text in texts.items()}
    return Description(
        FORMAT,
        source.bytes,
        producer=producer_of(extra.get(PRODUCER)),
        tensors=tensors,
        extra=extra,
    )
