"""The once-per-process log of API usage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from opscope._native import ffi, lib
from opscope.record import closing as closing

UsageHandler = Callable[[str], object]
MetadataHandler = Callable[[str, dict[str, str]], object]

_said: set[str] = set()
_handler: UsageHandler | None = None
_metadata_handler: MetadataHandler | None = None


def _raised(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    """A handler that raises never reaches the caller, who only wanted to say something."""
    if issubclass(kind, KeyboardInterrupt):
        lib.opscope_py_is_interrupted = 1  # raised in the program once C has left the handler
        return
    import logging

    logging.getLogger("opscope").warning(
        "an API-usage handler raised", exc_info=(kind, error, traceback)
    )


@ffi.def_extern(name="opscope_py_usage", onerror=_raised)  # type: ignore[untyped-decorator]
def _usage(key: Any, user: Any) -> None:
    if _handler is not None:
        _handler(ffi.string(key).decode(errors="replace"))


@ffi.def_extern(name="opscope_py_usage_metadata", onerror=_raised)  # type: ignore[untyped-decorator]
def _usage_metadata(context: Any, key: Any, value: Any, user: Any) -> None:
    """Metadata said in C, a key at a time."""
    if _metadata_handler is not None:
        texts = [ffi.string(text).decode(errors="replace") for text in (context, key, value)]
        _metadata_handler(texts[0], {texts[1]: texts[2]})


def log_api_usage_once(key: str) -> None:
    """Say that this process uses ``key``; after the first time this does nothing.

    >>> log_api_usage_once("mylib.fit")

    The key goes to the handler, into the recorder's segment, and, where the environment has
    ``OPSCOPE_API_USAGE_STDERR=1``, to standard error. At most 4,096 keys in a process.
    """
    if key not in _said:
        _said.add(key)
        lib.opscope_log_api_usage_once(key.encode(errors="replace"))


def set_api_usage_handler(handler: UsageHandler | None) -> None:
    """Have ``handler(key)`` called for every key, those said before first; None for no handler.

    What the handler raises is logged (to the logger "opscope"), and never reaches who says a key.
    """
    global _handler
    _check_callable(handler)
    _handler = handler
    entry = ffi.NULL if handler is None else ffi.addressof(lib, "opscope_py_usage_outside")
    lib.opscope_set_api_usage_handler(entry, ffi.NULL)


def log_api_usage_metadata(context: str, mapping: Mapping[str, object]) -> None:
    """Tell the metadata handler, if there is one, details of one use; not deduplicated.

    >>> log_api_usage_metadata("mylib.save", {"format": "v2", "tensors": 12})

    Values become text by ``str``.
    """
    if _metadata_handler is not None:
        try:
            _metadata_handler(context, {key: str(value) for key, value in mapping.items()})
        except Exception as error:
            _raised(type(error), error, error.__traceback__)


def set_api_usage_metadata_handler(handler: MetadataHandler | None) -> None:
    """Have ``handler(context, mapping)`` called for metadata; None for no handler."""
    global _metadata_handler
    _check_callable(handler)
    _metadata_handler = handler
    entry = ffi.NULL if handler is None else lib.opscope_py_usage_metadata
    lib.opscope_set_api_usage_metadata_handler(entry, ffi.NULL)


def _check_callable(handler: object) -> None:
    if handler is not None and not callable(handler):
        raise TypeError(f"a handler must be callable or None, not {handler!r}")
