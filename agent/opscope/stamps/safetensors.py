"""Stamps in the `__metadata__` of safetensors: `serialize` and `serialize_file` of the package.

A file whose writer gave no metadata gets the key `format` too, `pt` for one that
`safetensors.torch` wrote: Hugging Face's loaders take a file without metadata, but refuse one with
metadata that lacks this key. Where the value is not known, such a file is left as it is.
"""

import functools
import sys
from collections.abc import Callable
from typing import Any

from opscope import stamps

_METADATA_AT = {"serialize": 1, "serialize_file": 2}
"""The place of the argument `metadata`."""

_FORMATS = {
    "safetensors.torch": "pt",
    "safetensors.tensorflow": "tf",
    "safetensors.flax": "flax",
    "safetensors.mlx": "mlx",
}
"""The value of the key `format`, by the module that writes."""

_originals: dict[str, Callable[..., object]] = {}


def follow(package: Any) -> None:
    """Stamps what the package writes from now on."""
    for name, place in _METADATA_AT.items():
        if name not in _originals:
            original = _originals[name] = getattr(package, name)
            _replace(original, _stamping(original, place))


def leave(package: Any) -> None:
    """Restores the package's functions."""
    for name in list(_originals):
        _replace(getattr(package, name), _originals.pop(name))


def _replace(current: object, wanted: object) -> None:
    stamps.everywhere("safetensors", current, lambda module, name: setattr(module, name, wanted))


def _stamping(original: Callable[..., object], place: int) -> Callable[..., object]:
    @functools.wraps(original)
    def write(*arguments: Any, **keywords: Any) -> object:
        writer = sys._getframe(1).f_globals.get("__name__", "")
        given = keywords.get("metadata", arguments[place] if len(arguments) > place else None)
        metadata = _with_texts(given, writer)
        if len(arguments) > place:
            arguments = (*arguments[:place], metadata, *arguments[place + 1 :])
        else:
            keywords["metadata"] = metadata
        return original(*arguments, **keywords)

    return write


def _with_texts(metadata: Any, writer: str) -> Any:
    """The metadata and the stamp; the metadata alone where the stamp could do harm."""
    if writer.startswith("opscope.") or not isinstance(metadata or {}, dict):
        return metadata  # the core adds the files itself; the package refuses other types
    known = {"format": _FORMATS[writer]} if writer in _FORMATS else {}
    if not metadata and not known:
        return metadata
    found = stamps.texts()
    return found | (metadata or known) if found else metadata
