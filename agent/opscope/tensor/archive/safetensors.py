"""Files of safetensors, read and written by the `safetensors` package.

>>> opscope.tensor.archive.safetensors.save(model.state_dict(), "model.safetensors")
>>> opscope.tensor.load("model.safetensors")

The format holds tensors by name, and texts. The files of the process's extra-files hook are among
the texts, where they are UTF-8.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, MutableMapping
from typing import Any

from opscope._tensor import Tensor, as_bytes, over_bytes, tensor
from opscope.record.extra_files import hook_files
from opscope.tensor.archive import files
from opscope.tensor.archive.containers import DTYPES

_HEADER_LIMIT = 100_000_000
"""The largest header that the format allows, in bytes."""

_NAMES = {
    "F32": "float32",
    "F64": "float64",
    "I32": "int32",
    "I64": "int64",
    "U8": "uint8",
    "BOOL": "bool",
    "BF16": "bfloat16",
    "F16": "float16",
}


def is_one(path: str | os.PathLike[str]) -> bool:
    """Whether the file begins as the format does: the length of a JSON object, and that object."""
    start = files.start_of(path, 9)
    return start[8:] == b"{" and 2 <= int.from_bytes(start[:8], "little") <= _HEADER_LIMIT


def load(
    path: str | os.PathLike[str], extra_files: MutableMapping[str, bytes | None] | None = None
) -> dict[str, Tensor]:
    """The tensors by name. `extra_files`: as for `opscope.tensor.load`, from the file's texts.

    ValueError with the reason for a damaged file, or a dtype that tensors here do not have.
    """
    package = _package()
    with open(path, "rb") as file:
        content = file.read()
    try:
        found = package.deserialize(content)
    except package.SafetensorError as error:
        raise ValueError(f"{os.fspath(path)}: {error}") from None
    loaded: dict[str, Tensor] = {}
    for name, about in found:
        if about["dtype"] not in _NAMES:
            raise ValueError(
                f'{os.fspath(path)}: tensor "{name}": dtype {about["dtype"]} is not supported'
            )
        dtype = DTYPES[_NAMES[about["dtype"]]]
        loaded[name] = over_bytes(bytearray(about["data"]), dtype, tuple(about["shape"]))
    texts = metadata(content)
    for name in list(extra_files or ()):
        if name not in texts:
            raise KeyError(f"{os.fspath(path)} has no text {name!r}")
        extra_files[name] = texts[name].encode()  # type: ignore[index]
    return loaded


def save(
    tensors: Mapping[str, Tensor],
    path: str | os.PathLike[str],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Saves tensors by name, and texts. Tensors that share memory are separate afterwards."""
    texts = {name: content.decode() for name, content in hook_files().items() if _is_text(content)}
    texts |= dict(metadata or {})
    sources: dict[str, Tensor] = {}
    for name, one in tensors.items():
        if not isinstance(one, Tensor):
            raise TypeError(f"{name!r} is a {type(one).__qualname__}, not a Tensor")
        sources[name] = one.data if one.is_contiguous() else tensor(one.data)
    package = _package()
    described = {name: _described(package, one) for name, one in sources.items()}
    package.serialize_file(described, os.fspath(path), texts or None)


def _described(package: Any, source: Tensor) -> Any:
    """A contiguous tensor as the package wants it: by address, before version 0.8 as bytes."""
    name, shape = source.dtype.name, list(source.shape)
    if hasattr(package, "TensorSpec"):
        count = math.prod(shape) * source.dtype.itemsize
        return package.TensorSpec(
            dtype=name, shape=shape, data_ptr=source.data_ptr(), data_len=count
        )
    return {"dtype": name, "shape": shape, "data": bytes(memoryview(as_bytes(source)))}


def metadata(content: bytes) -> dict[str, str]:
    """The texts of a file that the package has accepted."""
    import json

    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    return dict(header.get("__metadata__", {}))


def _is_text(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _package() -> Any:
    try:
        import safetensors
    except ModuleNotFoundError as error:
        from opscope.extras import line

        raise ModuleNotFoundError(line("safetensors files", "tensor"), name=error.name) from error
    return safetensors
