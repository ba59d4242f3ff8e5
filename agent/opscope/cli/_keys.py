"""Keys of a terminal, one at a time, without Enter and without echo."""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from typing import Any

_NAMES = {
    "\r": "enter",
    "\n": "enter",
    "\x1b": "escape",
    "\x7f": "backspace",
    "\b": "backspace",
    "\x1b[A": "up",
    "\x1bOA": "up",
    "\x1b[B": "down",
    "\x1bOB": "down",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    **dict.fromkeys(("\x1b[H", "\x1bOH", "\x1b[1~", "\x1b[7~"), "home"),
    **dict.fromkeys(("\x1b[F", "\x1bOF", "\x1b[4~", "\x1b[8~"), "end"),
}
_SEQUENCE_S = 0.05
"""The bytes of one key arrive within this time."""


class Keys:
    """Reads keys within its `with` block, which restores the terminal's settings at its end."""

    def __init__(self) -> None:
        self._fd = sys.stdin.fileno()
        self._before: list[Any] = []

    def __enter__(self) -> Keys:
        self._before = termios.tcgetattr(self._fd)
        tty.setcbreak(self._fd)  # Ctrl-C stays a signal
        return self

    def __exit__(self, *_: object) -> None:
        termios.tcsetattr(self._fd, termios.TCSADRAIN, self._before)

    def read(self, seconds: float) -> list[str]:
        """The keys within that time, as soon as there is one: characters, or the names in
        _NAMES. Raises EOFError if the terminal is gone."""
        if not self._is_ready(seconds):
            return []
        raw = os.read(self._fd, 1024)
        if not raw:
            raise EOFError
        if raw.endswith(b"\x1b") and self._is_ready(_SEQUENCE_S):
            raw += os.read(self._fd, 1024)
        return list(_parsed(raw.decode(errors="ignore")))

    def _is_ready(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while True:
            left = max(deadline - time.monotonic(), 0.0)
            try:
                return bool(select.select([self._fd], [], [], left)[0])
            except InterruptedError:
                continue


def _parsed(text: str) -> list[str]:
    keys = []
    while text:
        sequence = next((one for one in (text[:4], text[:3], text[0]) if one in _NAMES), "")
        if sequence and not (sequence == "\x1b" and text[1:2] in ("[", "O")):
            keys.append(_NAMES[sequence])
            text = text[len(sequence) :]
        elif text[0] == "\x1b":
            # Another key with a sequence: it ends with its first letter or tilde.
            end = next((i for i, one in enumerate(text[2:], 2) if one.isalpha() or one == "~"), 1)
            text = text[end + 1 :]
        else:
            if text[0].isprintable():
                keys.append(text[0])
            text = text[1:]
    return keys
