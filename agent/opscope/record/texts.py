"""Texts from a program, as C takes them: their size never causes an exception."""

from __future__ import annotations

_TEXT_LIMIT = 65535  # of native/record/debug_info.c: bytes without the final NUL
_has_warned = False


def text_of(value: object) -> str:
    """`str(value)`; hexadecimal for an integer with more digits than Python converts."""
    try:
        return str(value)
    except ValueError:
        if not isinstance(value, int):
            raise
        return hex(value)


def c_text(text: str) -> bytes:
    """UTF-8 without NUL."""
    return text.encode(errors="replace").replace(b"\0", b"")


def label(key: str, value: object) -> tuple[bytes, bytes | None] | None:
    """A label as C takes it, with its value cut to the limit; None if its key is too long.

    Logs each of the two once in the process, to the logger "opscope". Raises ValueError for an
    empty key.
    """
    name, text = c_text(key), None if value is None else c_text(text_of(value))
    if not name:
        raise ValueError("debug_info: a label must have a name")
    if len(name) > _TEXT_LIMIT:
        _warn(f"the label {key[:80]!r}... is left out")
        return None
    if text is not None and len(text) > _TEXT_LIMIT:
        _warn(f"the value of {key[:80]!r} is cut off")
        text = text[:_TEXT_LIMIT].decode(errors="ignore").encode()
    return name, text


def _warn(what: str) -> None:
    global _has_warned
    if not _has_warned:
        _has_warned = True
        import logging

        logging.getLogger("opscope").warning(
            "debug_info takes names and values of less than 64 KiB: %s; further ones are, too", what
        )
