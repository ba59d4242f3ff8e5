"""What a model's file holds, without running anything of it: `opscope model show`.

A format is one file of this package. It has `FORMAT`, its name for people; `is_one(source)`, and
`describe(source)`, which gives a Description.
"""

from __future__ import annotations

import os

from opscope.errors import ModelFileError
from opscope.models import (
    exported_program,
    onnx_model,
    opscope_archive,
    safetensors_file,
    torch_save,
    torch_script,
)
from opscope.models.description import Description
from opscope.models.source import Source

# The first that takes a file describes it.
_FORMATS = (
    safetensors_file,
    opscope_archive,
    torch_script,
    torch_save,
    exported_program,
    onnx_model,
)


def describe(path: str | os.PathLike[str]) -> Description:
    """What the file at `path` holds. Raises ModelFileError, with the reason, for any other file."""
    try:
        source = Source(path)
        for format in _FORMATS:
            if format.is_one(source):
                found: Description = format.describe(source)
                return found
        if source.archive_fault:
            raise source.archive_fault
    except (OSError, ValueError, KeyError) as error:
        text = str(error) if str(error).startswith(str(path)) else f"{path}: {error}"
        raise ModelFileError(text) from error
    known = ", ".join(format.FORMAT for format in _FORMATS)
    raise ModelFileError(f"{path}: not a model's file of a known format ({known})")
