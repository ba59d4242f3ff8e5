"""The once-per-process log of API usage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from opscope._native import ffi, lib

UsageHandler = Callable[[str], object]
MetadataHandler = Callable[[str, dict[str, str]], object]

_said: set[str] = set()
_handler: UsageHandler | None = None
_metadata_handler: MetadataHandler | None = None


@ffi.def_extern(name="opscope_py_usage")  # type: ignore[untyped-decorator]
def _usage(key: Any, user: Any) -> None:
    if _handler is not None:
        _call(_handler, ffi.string(key).decode(errors="replace"))


@ffi.def_extern(name="opscope_py_usage_metadata")  # type: ignore[untyped-decorator]
def _usage_metadata(context: Any, key: Any, value: Any, user: Any) -> None:
    """Metadata said in C, a key at a time."""
    if _metadata_handler is not None:
        texts = [ffi.string(text).decode(errors="replace") for text in (context, key, value)]
        _call(_metadata_handler, texts[0], {texts[1]: texts[2]})


def _call(handler: Callable[..., object], *args: object) -> None:
    """A handler that raises never reaches the caller, who only wanted to say something."""
    try:
        handler(*args)
    except Exception:
        import logging

        logging.getLogger("opscope").warning("an API-usage handler raised", exc_info=True)


def log_api_usage_once(key: str) -> None:
    """Say that this process uses ``key``; after the first time this does nothing."""
    if key not in _said:
        _said.add(key)
        lib.opscope_log_api_usage_once(key.encode())


def set_api_usage_handler(handler: UsageHandler | None) -> None:
    """Have ``handler(key)`` called for every key, those said before first; None for no handler."""
    global _handler
    _handler = handler
    entry = lib.opscope_py_usage if handler is not None else ffi.NULL
    lib.opscope_set_api_usage_handler(entry, ffi.NULL)


def log_api_usage_metadata(context: str, mapping: Mapping[str, object]) -> None:
    """Tell the metadata handler, if there is one, details of one use; not deduplicated."""
    if _metadata_handler is not None:
        _call(_metadata_handler, context, {key: str(value) for key, value in mapping.items()})


def set_api_usage_metadata_handler(handler: MetadataHandler | None) -> None:
    """Have ``handler(context, mapping)`` called for metadata; None for no handler."""
    global _metadata_handler
    _metadata_handler = handler
    entry = lib.opscope_py_usage_metadata if handler is not None else ffi.NULL
    lib.opscope_set_api_usage_metadata_handler(entry, ffi.NULL)
