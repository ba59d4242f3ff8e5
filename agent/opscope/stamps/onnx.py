"""Stamps in the `metadata_props` of ONNX models: `save` and `save_model` of the package.

They write what `torch.onnx.export`, converters and quantizers make. A program that writes
`model.SerializeToString()` to a file by itself calls neither, and its file stays as it is; so do
those of PyTorch's legacy exporter (`dynamo=False`).
"""

import functools
from collections.abc import Callable
from typing import Any

from opscope import stamps

_original: "Callable[..., object] | None" = None


def follow(package: Any) -> None:
    """Stamps what the package writes from now on."""
    global _original
    if _original is None:
        original = _original = package.save_model
        _replace(original, _stamping(original, package))


def leave(package: Any) -> None:
    """Restores the package's functions."""
    global _original
    if _original is not None:
        _replace(package.save_model, _original)
        _original = None


def _replace(current: object, wanted: object) -> None:
    stamps.everywhere("onnx", current, lambda module, name: setattr(module, name, wanted))


def _stamping(original: Callable[..., object], package: Any) -> Callable[..., object]:
    @functools.wraps(original)
    def write(proto: Any, *arguments: Any, **keywords: Any) -> object:
        texts = stamps.texts()
        if texts and isinstance(proto, bytes):
            proto = package.ModelProto.FromString(proto)  # as the package does
        if not texts or not isinstance(proto, package.ModelProto):
            return original(proto, *arguments, **keywords)
        known = {each.key for each in proto.metadata_props}
        added = {name: text for name, text in texts.items() if name not in known}
        for name, text in added.items():
            proto.metadata_props.add(key=name, value=text)
        try:
            return original(proto, *arguments, **keywords)
        finally:
            _remove(proto, added)

    return write


def _remove(proto: Any, texts: dict[str, str]) -> None:
    """The program's model is again as it was."""
    for index in reversed(range(len(proto.metadata_props))):
        if proto.metadata_props[index].key in texts:
            del proto.metadata_props[index]
