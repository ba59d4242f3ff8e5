"""`save` and `load`: compiled models in files."""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping

from opscope.record.usage import log_api_usage_once
from opscope.tensor.archive.files import Archive
from opscope.tensor.jit import archive
from opscope.tensor.jit.compiled import CompiledModel
from opscope.tensor.jit.torchscript.archive import is_torchscript
from opscope.tensor.jit.torchscript.translate import translate


def save(
    model: CompiledModel,
    path: str | os.PathLike[str],
    *,
    extra_files: Mapping[str, bytes | str] | None = None,
    model_id: str | None = None,
) -> None:
    """Save a compiled model to the file at `path`, which is replaced only when the new one is
    complete.

    >>> opscope.tensor.jit.save(model, "model.pt", extra_files={"labels.txt": "cat dog"})

    `model_id` is the label of the loaded model's calls; by default it is the model's name and a
    digest of its graphs and the descriptions of its tensors. `extra_files` and the process's hook
    (`opscope.set_export_extra_files_hook`) add files, as for `opscope.tensor.save`.
    """
    log_api_usage_once("opscope.tensor.jit.save")
    model.save(path, extra_files=extra_files, model_id=model_id)


def load(
    path: str | os.PathLike[str],
    *,
    extra_files: MutableMapping[str, bytes | None] | None = None,
) -> CompiledModel:
    """Load a compiled model; its tensors are mapped from the file, as by `opscope.tensor.load`.

    Files of `torch.jit.save` are loaded too, if the core has their operators
    (`opscope.tensor.jit.torchscript`).

    Loading runs no code of the file: its graphs call operators of the tensor core alone, and are
    verified before. `extra_files`: the value of each key becomes the content of that extra file;
    KeyError for one that the file lacks.

    Raises OSError if the file cannot be read, and ValueError, naming file, entry and reason, if it
    is damaged or holds something else.
    """
    log_api_usage_once("opscope.tensor.jit.load")
    opened = Archive(path)
    parts = translate(opened) if is_torchscript(opened) else archive.read(opened)
    try:
        model = CompiledModel.of(parts)
    except (ValueError, TypeError, RuntimeError, MemoryError) as error:
        if is_torchscript(opened):
            raise ValueError(f"{opened.path}: {error}") from None
        raise archive.blame(opened, parts, error) from None
    opened.fill(extra_files)
    return model
