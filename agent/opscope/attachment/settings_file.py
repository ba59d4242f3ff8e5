"""The settings file: settings from `opscope set` for processes that start later.

`opscope set` writes the file `settings` in the segment directory; each process reads it as it
attaches. It is UTF-8 text with one rule a line: `KEY=VALUE SERVICE`. SERVICE is a glob for the
service's name (to the end of the line); KEY=VALUE is as for `opscope set`. `reset SERVICE` cancels
the rules above it for these services. `#` begins a comment. The last matching rule for a key wins.

The file overrides the environment and the TOML file, because it is newer. So it is trusted only if
it belongs to the directory's owner or to root, and no other user can write it.
record/settings_change.py defines the meaning of values.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from opscope.record.settings_change import SettingsChange

NAME = "settings"
RESET = "reset"

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LIMIT_BYTES = 1 << 20


class Rule(NamedTuple):
    word: str
    """`key=value`, or RESET."""
    service: str
    """A glob."""

    @property
    def key(self) -> str:
        return self.word.partition("=")[0]


def read(directory: str | int) -> str | None:
    """The file's text; None if there is no file. `directory` is a path or a descriptor.

    Raises OSError, with the reason, if the file cannot be trusted.
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
            raise OSError(f"other users can write to {place}: chmod go-w {place}")
        if found.st_size > _LIMIT_BYTES:
            raise OSError(f"{place} has {found.st_size} bytes, more than {_LIMIT_BYTES}")
        return os.read(fd, _LIMIT_BYTES).decode(errors="replace")
    finally:
        os.close(fd)


def rules(text: str) -> list[Rule]:
    """The rules in the file, in their order, without lines that have no service.

    Also without unprintable ones, which `opscope set` never writes and a terminal must not show.
    """
    found = []
    for line in text.splitlines():
        word, _, service = line.strip().partition(" ")
        if word and service.strip() and not word.startswith("#") and line.strip().isprintable():
            found.append(Rule(word, service.strip()))
    return found


def matches(service: str, glob: str) -> bool:
    """Whether the glob matches the service; `*`, `?` and `[...]` as in a shell."""
    from fnmatch import fnmatchcase

    return fnmatchcase(service, glob)


def apply(directory: str, service: str, complain: Callable[[str], None]) -> None:
    """Applies the file's rules for the service on top of this process's configuration.

    Skips an invalid rule, and calls `complain` with the reason.
    """
    try:
        text = read(directory)
    except OSError as error:
        complain(str(error))
        return
    if text is None:
        return
    from opscope.errors import ConfigError
    from opscope.record.settings_change import SettingsChange, inherit, parse

    change: SettingsChange = SettingsChange()
    for rule in rules(text):
        if not matches(service, rule.service):
            continue
        try:
            change = SettingsChange() if rule.word == RESET else parse([rule.word]).over(change)
        except ConfigError as error:
            complain(f"{directory}/{NAME}: {error}")
    try:
        if change.given:
            inherit(change)
    except ConfigError as error:
        complain(f"{directory}/{NAME}: {error}")
