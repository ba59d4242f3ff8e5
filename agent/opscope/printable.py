"""Text of other processes and users as a terminal may show it: `printable(text)`."""

from __future__ import annotations


def printable(text: str) -> str:
    """The text with a question mark in place of each character that could command a terminal."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)
