"""Save tensors, and containers of them, to files, and load them without copies.

>>> opscope.tensor.save(model.state_dict(), "model.pt", extra_files={"notes.txt": b"epoch 12"})
>>> model.load_state_dict(opscope.tensor.load("model.pt"))

A file is an archive (native/include/opscope/archive.h): a zip file whose tensors begin at multiples
of 64 bytes. `load` maps it, so tensors take no memory of their own until they are written to, and
processes that load one file share its pages. `save` replaces a file atomically. Loading runs no
code from the file.

`load` also reads the files of `torch.save` (tensors and plain containers, as with
`weights_only=True`) and of safetensors.

Entries of an archive, all in one folder:

| entry | content |
|---|---|
| `version` | of the format: 1 |
| `byteorder` | `little` |
| `model.json` | the containers, and dtype, sizes, strides, offset and storage of each tensor |
| `tensors/N` | the bytes of storage N, which several tensors may share |
| `extra/NAME` | extra files |
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping, MutableMapping
from typing import IO, Any

from opscope.record.usage import log_api_usage_once
from opscope.tensor.archive import containers, files, safetensors, storages, torch_files
from opscope.tensor.places import check

__all__ = ["load", "save"]


def save(
    obj: Any,
    path: str | os.PathLike[str] | IO[bytes],
    *,
    extra_files: Mapping[str, bytes | str] | None = None,
) -> None:
    """Save `obj` to the file at `path`, which is replaced only when the new one is complete; or
    write it to an open binary file.

    `obj`: tensors and parameters; None, bool, int, float, str, bytes, dtypes; lists, tuples, dicts
    and OrderedDicts of these. Tensors that share memory still share it when loaded; a part of a
    large tensor is saved without the rest. Gradients and the tape are not saved.

    `extra_files`: contents by name, to be read by `load(extra_files=...)`. The process's hook
    (`opscope.set_export_extra_files_hook`) adds more.

    Raises TypeError, naming the place within `obj`, for other objects; ValueError for containers
    that contain themselves; OSError if the file cannot be written.
    """
    log_api_usage_once("opscope.tensor.save")
    if not isinstance(path, (str, os.PathLike)):
        with tempfile.TemporaryDirectory() as folder:
            own = os.path.join(folder, "archive")
            save(obj, own, extra_files=extra_files)
            with open(own, "rb") as written:
                shutil.copyfileobj(written, path)
        return
    tensors = storages.Writer()
    tree = containers.to_tree(obj, tensors.add)
    document = {"object": tree, "tensors": tensors.described()}
    files.write(path, {files.MODEL: document}, tensors.contents(), extra_files or {})


def load(
    path: str | os.PathLike[str] | IO[bytes],
    map_location: Any = None,
    *,
    weights_only: bool = True,
    mmap: bool | None = None,
    extra_files: MutableMapping[str, bytes | None] | None = None,
) -> Any:
    """Load what `save`, `torch.save` or safetensors wrote; tensors are mapped from the file.

    Writing to such a tensor changes this process's copy, never the file. Do not truncate or
    overwrite a file in place while it is mapped: replace it, as `save` does.

    An open binary file is read from where it is. `map_location` is the cpu. `weights_only` and
    `mmap` change nothing: no file runs code, and all are mapped.

    `extra_files`: the value of each key becomes the content of that extra file. KeyError for one
    that the file lacks.

    Raises OSError if the file cannot be read, and ValueError, naming file, entry and reason, if it
    is damaged or holds something else.
    """
    log_api_usage_once("opscope.tensor.load")
    if not callable(map_location):
        check(map_location, "load")
    if not isinstance(path, (str, os.PathLike)):
        with tempfile.NamedTemporaryFile() as copied:
            shutil.copyfileobj(path, copied)
            copied.flush()
            return load(copied.name, extra_files=extra_files)
    if safetensors.is_one(path):
        return safetensors.load(path, extra_files)
    archive = files.Archive(path)
    if files.MODEL in archive.entries:
        archive.check_format()
        document = archive.json(files.MODEL)
        if isinstance(document, dict) and "model" in document:
            raise archive.fault(
                files.MODEL, "a compiled model, which opscope.tensor.jit.load loads"
            )
        loaded = containers.from_tree(
            archive.field(document, "object", files.MODEL),
            storages.Reader(archive, archive.field(document, "tensors", files.MODEL)).tensor,
            archive.fault_in(files.MODEL),
        )
    else:
        loaded = torch_files.load(archive)
    archive.fill(extra_files)
    return loaded
