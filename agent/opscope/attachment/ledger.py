"""The ledger: why a process that could have been observed is not, or not wholly.

An entry is a symbolic link `<pid>-<process_start>.why` whose target is the text
`<utc seconds>:<code>:<free text>`. Making one is atomic and, at under 128 bytes of text, takes no
data block on tmpfs: it works where the segment directory is full, which is the reason one may have
to tell. Where that directory cannot be used, entries go to /tmp/opscope-<euid>.

Not here: deciding (attachment/policy.py). This file stands alone, with nothing of opscope imported,
because attachment/site/sitecustomize.py loads it where opscope itself cannot or must not be.
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
    """Field 22 of /proc/<pid>/stat: clock ticks since boot. With the pid, names one process."""
    utc_seconds: int
    code: str
    """One of CODES, or a later version's."""
    text: str
    path: str


def places(directory: str | None) -> tuple[str, ...]:
    """Where entries of this user may be: the segment directory, if known, and the fallback."""
    fallback = FALLBACK.format(uid=os.geteuid())
    return (directory, fallback) if directory else (fallback,)


def write(config: Config | None, code: str, text: str) -> bool:
    """Records this process's reason, replacing an earlier one. False where no place takes it.

    Where there is no configuration, because it is bad or was not loaded, OPSCOPE_DIR and
    OPSCOPE_DEBUG hold as they are. With debug on, also says so on standard error. Raises nothing
    that the operating system may cause.
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
    """One line on standard error, where there is one."""
    try:
        print(f"opscope: {text}", file=sys.stderr)
    except (OSError, ValueError, AttributeError):
        pass


def read_all(directories: Iterable[str]) -> list[LedgerEntry]:
    """The readable entries of these directories; links of another form are passed over."""
    entries = []
    for directory in directories:
        try:
            names = sorted(os.listdir(directory))
        except OSError:
            continue
        for name in names:
            if name.endswith(_SUFFIX):
                try:
                    entries.append(_read(os.path.join(directory, name)))
                except (OSError, ValueError):
                    continue
    return entries


def forget(entry: LedgerEntry) -> None:
    """Removes an entry, for the host agent once its process is dead; gone already is fine."""
    try:
        os.unlink(entry.path)
    except FileNotFoundError:
        pass


def _link(place: bytes, target: bytes) -> None:
    try:
        os.mkdir(place, 0o700)
    except FileExistsError:
        pass
    # Names in a directory of another owner, or one that others may write, could lead anywhere.
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
    # Paths stand in the middle of messages, what is the matter at the end.
    cut = text[: _TARGET_BYTES - _TAIL_BYTES - 3] + b"..." + text[-_TAIL_BYTES:]
    return cut.decode(errors="ignore").encode()


def _printable(text: str) -> str:
    flat = " ".join(text.split())
    return "".join(c if c.isprintable() else "?" for c in flat)
