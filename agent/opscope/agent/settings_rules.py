"""Change the settings file, which processes read as they attach (attachment/settings_file.py).

Written whole under another name and renamed, so that a reader sees the old rules or the new ones.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from opscope.agent import directories
from opscope.agent.segment_file import SegmentError
from opscope.attachment.settings_file import NAME, RESET, Rule, matches, read, rules
from opscope.errors import OpscopeError
from opscope.record.wish import BITS, Wish

_HEAD = """\
# Written by `opscope set`; read by each process as it attaches. A rule a line, KEY=VALUE SERVICE
# (a glob, to the line's end); of several for a service and a key the last holds; `reset SERVICE`
# makes void what stands above it for these.
"""
_EVERY = "*"


def read_rules(directory: str) -> list[Rule]:
    """The rules of that directory; OpscopeError where its file is not to be trusted."""
    try:
        with directories.opened(directory) as fd:
            return rules(read(fd) or "")
    except FileNotFoundError:
        return []
    except (SegmentError, OSError) as error:
        raise OpscopeError(f"{directory}/{NAME}: {error}") from error


def changed(found: Sequence[Rule], service: str, wish: Wish | None) -> list[Rule]:
    """The rules with this wish for this glob of services; None: as if nothing had been set."""
    if wish is None:
        kept = [rule for rule in found if service != _EVERY and rule.service != service]
        return [*kept, Rule(RESET, service)] if kept else []
    new = [Rule(word, service) for word in wish.words()]
    bits = 0
    for rule in new:
        bits |= BITS[rule.key]
    # What every service is to have, or this glob had, makes no difference any more.
    kept = [
        rule
        for rule in found
        if not (BITS.get(rule.key, 0) & bits and service in (_EVERY, rule.service))
    ]
    return [*kept, *new]


def write_rules(directory: str, found: Sequence[Rule]) -> None:
    """Writes them, or removes the file where there are none. OpscopeError where it cannot be."""
    try:
        with directories.opened(directory) as fd:
            if found:
                _replace(fd, _HEAD + "".join(f"{rule.word} {rule.service}\n" for rule in found))
            else:
                _remove(fd)
    except (SegmentError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise OpscopeError(
            f"{directory}/{NAME}: {reason}: processes that start later are not set; "
            "only the directory's owner and root may"
        ) from error


def _replace(directory_fd: int, text: str) -> None:
    hidden = f".{NAME}-{os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(hidden, flags, 0o644, dir_fd=directory_fd)
    try:
        os.fchmod(fd, 0o644)  # whatever the umask: what root writes is for others to read
        with os.fdopen(fd, "w") as file:
            file.write(text)
        os.rename(hidden, NAME, src_dir_fd=directory_fd, dst_dir_fd=directory_fd)
    except BaseException:
        os.unlink(hidden, dir_fd=directory_fd)
        raise


def _remove(directory_fd: int) -> None:
    try:
        os.unlink(NAME, dir_fd=directory_fd)
    except FileNotFoundError:
        pass


def for_service(found: Sequence[Rule], service: str) -> list[Rule]:
    """Those that are for it."""
    return [rule for rule in found if matches(service, rule.service)]
