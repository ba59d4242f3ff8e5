"""The ledger: the reasons why processes that could be observed are not, or only in part.

An entry is a symbolic link `<pid>-<process_start>.why` whose target is the text
`<utc seconds>:<code>:<free text>`. Creating one is atomic and, with less than 128 bytes of text,
takes no data block on tmpfs; so it works in a full segment directory, which may be the very reason
to record. If that directory is unusable, entries go to /tmp/opscope-<euid>.

attachment/policy.py decides. This file imports nothing of opscope, because
attachment/site/sitecustomize.py loads it where opscope itself is unavailable or must not run.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Iterable
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from opscope.config import Config

CODES = (
    "disabled",
    "denied",
    "not-included",
    "other-user",
    "unsupported-python",
    "subinterpreter",
    "opscope-missing",
    "config",
    "recorder",
    "bridge",
    "error",
)

FALLBACK = "/tmp/opscope-{uid}"

_SUFFIX = ".why"
# tmpfs keeps a link of up to 127 bytes inside the inode; a longer one takes a page.
_TARGET_BYTES = 127
_TAIL_BYTES = 48


class LedgerEntry(NamedTuple):
    pid: int
    process_start: int
    """Field 22 of /proc/<pid>/stat: clock ticks since boot. Identifies a process with its pid."""
    utc_seconds: int
    code: str
    """One of CODES, or a code of a later version."""
    text: str
    path: str


def places(directory: str | None) -> tuple[str, ...]:
    """Directories of this user's entries: the segment directory, if known, and the fallback."""
    fallback = FALLBACK.format(uid=os.geteuid())
    return (directory, fallback) if directory else (fallback,)


def write(config: Config | None, code: str, text: str) -> bool:
    """Records this process's reason, replacing an earlier one. False if no directory takes it.

    Without a configuration, because it is bad or was not loaded, OPSCOPE_DIR and OPSCOPE_DEBUG are
    used as they are. In debug mode, also writes to standard error. Raises nothing that the
    operating system may cause.
    """
    if config is not None:
        directory: str | None = config.directory
        debug = config.debug
    else:
        directory = os.environ.get("OPSCOPE_DIR")
        debug = os.environ.get("OPSCOPE_DEBUG", "").lower() in ("1", "true", "yes", "on")
    if debug:
        say(f"{code}: {text}")
    target = _shortened(f"{int(time.time())}:{code}:{_printable(text)}".encode())
    for place in places(directory):
        try:
            _link(os.fsencode(place), target)
        except (OSError, ValueError):
            continue
        return True
    return False


def say(text: str) -> None:
    """Writes one line to standard error, if there is one."""
    try:
        print(f"opscope: {text}", file=sys.stderr)
    except (OSError, ValueError, AttributeError):
        pass


def read_all(directories: Iterable[str], limit: int | None = None) -> list[LedgerEntry]:
    """The readable entries of these directories, at most `limit`; skips links of another form."""
    entries = []
    left = -1 if limit is None else limit
    for directory in directories:
        try:
            names = _names(directory, left)
        except OSError:
            continue
        left -= len(names)
        for name in names:
            try:
                entries.append(_read(os.path.join(directory, name)))
            except (OSError, ValueError):
                continue
    return entries


def _names(directory: str, limit: int) -> list[str]:
    """The sorted names of at most `limit` entries; all for a negative limit. Examines at most 64
    files an entry, since other files are few."""
    names: list[str] = []
    with os.scandir(directory) as listed:
        for number, one in enumerate(listed):
            if limit >= 0 and (len(names) >= limit or number >= 64 * limit):
                break
            if one.name.endswith(_SUFFIX):
                names.append(one.name)
    return sorted(names)


def forget(entry: LedgerEntry) -> None:
    """Removes an entry after its process has ended; a missing entry is no error."""
    try:
        os.unlink(entry.path)
    except FileNotFoundError:
        pass


def _link(place: bytes, target: bytes) -> None:
    try:
        os.mkdir(place, 0o700)
    except FileExistsError:
        pass
    # Names in a directory that another user owns or can write could lead anywhere.
    found = os.lstat(place)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise PermissionError
    with open("/proc/self/stat", "rb") as file:
        start = file.read().rpartition(b")")[2].split()[19]
    path = b"%s/%d-%s%s" % (place, os.getpid(), start, _SUFFIX.encode())
    os.symlink(target, path + b"~")
    os.rename(path + b"~", path)


def _read(path: str) -> LedgerEntry:
    pid, start = os.path.basename(path).removesuffix(_SUFFIX).split("-")
    seconds, code, text = os.readlink(path).split(":", 2)
    return LedgerEntry(int(pid), int(start), int(seconds), _printable(code), _printable(text), path)


def _shortened(text: bytes) -> bytes:
    if len(text) <= _TARGET_BYTES:
        return text
    # Messages have paths in the middle and the problem at the end.
    cut = text[: _TARGET_BYTES - _TAIL_BYTES - 3] + b"..." + text[-_TAIL_BYTES:]
    return cut.decode(errors="ignore").encode()


def _printable(text: str) -> str:
    flat = " ".join(text.split())
    return "".join(c if c.isprintable() else "?" for c in flat)
