"""The once-per-process log of API usage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from opscope._native import ffi, lib
from opscope.record import closing as closing
from opscope.record import interrupts
from opscope.record.texts import text_of

UsageHandler = Callable[[str], object]
MetadataHandler = Callable[[str, dict[str, str]], object]

_KEY_LIMIT = 4096  # of native/record/usage.c
_said: set[str] = set()
_handler: UsageHandler | None = None
_metadata_handler: MetadataHandler | None = None


def _raised(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    """Logs the exception of a handler, so that it never reaches the caller."""
    if interrupts.pass_on(error, traceback):
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
    """Receives metadata from C, one key at a time."""
    if _metadata_handler is not None:
        texts = [ffi.string(text).decode(errors="replace") for text in (context, key, value)]
        _metadata_handler(texts[0], {texts[1]: texts[2]})


def log_api_usage_once(key: str) -> None:
    """Log that this process uses `key`; later calls with the same key do nothing.

    >>> log_api_usage_once("mylib.fit")

    The key goes to the handler, into the recorder's segment and, with `OPSCOPE_API_USAGE_STDERR=1`
    in the environment, to standard error. At most 4,096 keys in a process.
    """
    if key not in _said and len(_said) < _KEY_LIMIT:
        _said.add(key)
        lib.opscope_log_api_usage_once(key.encode(errors="replace"))


def set_api_usage_handler(handler: UsageHandler | None) -> None:
    """Call `handler(key)` for every key, including earlier ones; None removes the handler.

    Exceptions of the handler are logged (to the logger "opscope") and never reach the caller that
    logs a key.
    """
    global _handler
    _check_callable(handler)
    _handler = handler
    entry = ffi.NULL if handler is None else ffi.addressof(lib, "opscope_py_usage_outside")
    lib.opscope_set_api_usage_handler(entry, ffi.NULL)


def log_api_usage_metadata(context: str, mapping: Mapping[str, object]) -> None:
    """Pass details of one use to the metadata handler, if there is one; not deduplicated.

    >>> log_api_usage_metadata("mylib.save", {"format": "v2", "tensors": 12})

    Values become text by `str`.
    """
    if _metadata_handler is not None:
        try:
            _metadata_handler(context, {key: text_of(value) for key, value in mapping.items()})
        except Exception as error:
            if interrupts.is_of_signal(error):
                raise
            _raised(type(error), error, error.__traceback__)


def set_api_usage_metadata_handler(handler: MetadataHandler | None) -> None:
    """Call `handler(context, mapping)` for metadata; None removes the handler."""
    global _metadata_handler
    _check_callable(handler)
    _metadata_handler = handler
    outside = "opscope_py_usage_metadata_outside"
    entry = ffi.NULL if handler is None else ffi.addressof(lib, outside)
    lib.opscope_set_api_usage_metadata_handler(entry, ffi.NULL)


def _check_callable(handler: object) -> None:
    if handler is not None and not callable(handler):
        raise TypeError(f"a handler must be callable or None, not {handler!r}")
