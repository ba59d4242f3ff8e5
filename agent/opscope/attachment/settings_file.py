"""The settings file: what an operator set for processes that are yet to start.

``settings`` in the segment directory, written by ``opscope set`` and read by each process as it
attaches. Text in UTF-8, a rule a line, ``KEY=VALUE SERVICE``, where SERVICE is a glob for the
service's name (to the line's end) and KEY=VALUE as for ``opscope set``; ``reset SERVICE`` makes
void what stands above it for these; ``#`` begins a comment. Of several rules for a service and a
key the last holds.

It wins over the environment and the TOML file, as somebody says it now: so it is trusted only if it
belongs to the directory's owner or to root, and nobody else may write it. Not here: what a value
means (record/wish.py).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from opscope.record.wish import Wish

NAME = "settings"
RESET = "reset"

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LIMIT_BYTES = 1 << 20


class Rule(NamedTuple):
    word: str
    """``key=value``, or RESET."""
    service: str
    """A glob."""

    @property
    def key(self) -> str:
        return self.word.partition("=")[0]


def read(directory: str | int) -> str | None:
    """The file's text; None where there is none. OSError, with what is wrong, where it may not be
    trusted. A directory may also be given by a descriptor of it.
    """
    place = f"{directory}/{NAME}" if isinstance(directory, str) else NAME
    by = None if isinstance(directory, str) else directory
    try:
        fd = os.open(place, _FLAGS, dir_fd=by)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        found = os.fstat(fd)
        owner = os.stat(directory).st_uid
        if not stat.S_ISREG(found.st_mode):
            raise OSError(f"{place} is not a regular file")
        if found.st_uid not in (0, owner):
            raise OSError(f"{place} belongs to uid {found.st_uid}, not to uid {owner} or root")
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise OSError(f"{place} can be written by others: chmod go-w {place}")
        if found.st_size > _LIMIT_BYTES:
            raise OSError(f"{place} has {found.st_size} bytes, more than {_LIMIT_BYTES}")
        return os.read(fd, _LIMIT_BYTES).decode(errors="replace")
    finally:
        os.close(fd)


def rules(text: str) -> list[Rule]:
    """The rules in the file, in their order; lines without a service are left out."""
    found = []
    for line in text.splitlines():
        word, _, service = line.strip().partition(" ")
        if word and service.strip() and not word.startswith("#"):
            found.append(Rule(word, service.strip()))
    return found


def matches(service: str, glob: str) -> bool:
    """Whether that glob is for the service; `*`, `?` and `[...]` as in a shell."""
    from fnmatch import fnmatchcase

    return fnmatchcase(service, glob)


def apply(directory: str, service: str, complain: Callable[[str], None]) -> None:
    """Lays what the file says for the service over what this process was configured with.

    A rule that cannot be used is passed over, the others hold; `complain` is told.
    """
    try:
        text = read(directory)
    except OSError as error:
        complain(str(error))
        return
    if text is None:
        return
    from opscope.errors import ConfigError
    from opscope.record.wish import Wish, inherit, parse

    wish: Wish = Wish()
    for rule in rules(text):
        if not matches(service, rule.service):
            continue
        try:
            wish = Wish() if rule.word == RESET else parse([rule.word]).over(wish)
        except ConfigError as error:
            complain(f"{directory}/{NAME}: {error}")
    try:
        if wish.given:
            inherit(wish)
    except ConfigError as error:
        complain(f"{directory}/{NAME}: {error}")
