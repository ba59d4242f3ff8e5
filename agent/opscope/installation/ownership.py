"""Check that no untrusted user can change code that other users' programs will run.

`opscope install` by root makes every program of an environment, including root's, run a few files.
A user who can write one of them, or replace it through a directory above it, could become root. So
the whole path of each file is checked: owners, modes, groups with members, access control lists,
links.
"""

from __future__ import annotations

import glob
import grp
import os
import pwd
import stat
from collections.abc import Collection, Iterable, Iterator

from opscope.errors import OpscopeError
from opscope.installation.environment import Environment

_ACCESS_LIST = "system.posix_acl_access"
_LINK_LIMIT = 40


class Ownership:
    """Checks that only `trusted` users (user ids) can change files; each file once."""

    def __init__(self, trusted: Collection[int]) -> None:
        self._trusted = frozenset(trusted)
        self._seen: set[tuple[str, bool]] = set()

    def refuse(self, paths: Iterable[str]) -> None:
        """Raises OpscopeError, with path and reason, for the first file that others can change.

        A missing file is harmless, unless another user could create it.
        """
        for path in paths:
            for entry, found, is_last in _way(os.path.abspath(path)):
                reason = self._reason(entry, found, is_last)
                if reason:
                    raise OpscopeError(
                        f"{entry} {reason}, who could change the code that root runs in every "
                        "process; install opscope from an environment that only root can write to"
                    )

    def _reason(self, entry: str, found: os.stat_result, is_last: bool) -> str:
        if (entry, is_last) in self._seen:
            return ""
        self._seen.add((entry, is_last))
        if found.st_uid not in self._trusted:
            return f"belongs to {_user(found.st_uid)}"
        if stat.S_ISLNK(found.st_mode):
            return ""  # only its owner, or a user who can write the directory, can replace it
        if stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX and not is_last:
            return ""  # like /tmp: others may add names there, but not replace other users' files
        if found.st_mode & stat.S_IWOTH:
            return "can be written by every user"
        if found.st_mode & stat.S_IWGRP:
            if _has_access_list(entry):
                return "can be written by the users in its access control list"
            others = _others_in(found.st_gid, self._trusted)
            if others:
                return f"can be written by {others}"
        return ""


def files_of(environment: Environment, package: str) -> Iterator[str]:
    """The files that a program of this environment runs at its start, with opscope in `package`."""
    yield environment.python
    prefix = os.path.dirname(os.path.dirname(environment.python))
    if os.path.exists(os.path.join(prefix, "pyvenv.cfg")):
        yield os.path.join(prefix, "pyvenv.cfg")
    for directory in dict.fromkeys((environment.site, *environment.path)):
        yield directory
        escaped = glob.escape(directory)
        yield from sorted(glob.glob(f"{escaped}/*.pth"))
        yield from sorted(glob.glob(f"{escaped}/*_cffi_backend*"))
        yield from _tree(os.path.join(directory, "opscope"))
    yield from _tree(package)


def _tree(top: str) -> Iterator[str]:
    if os.path.isdir(top):
        for directory, _, names in os.walk(top):
            yield directory
            yield from (os.path.join(directory, name) for name in sorted(names))


def _way(path: str) -> Iterator[tuple[str, os.stat_result, bool]]:
    """Each entry that the lookup of the path passes through, and whether it is the last one.

    Ends early if the file does not exist.
    """
    yield "/", os.lstat("/"), path == "/"
    at, rest, links = "/", [name for name in path.split("/") if name], 0
    while rest:
        name = rest.pop(0)
        if name in (".", ".."):
            at = os.path.dirname(at) if name == ".." else at
            continue
        entry = os.path.join(at, name)
        try:
            found = os.lstat(entry)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise OpscopeError(f"{entry}: {error.strerror}") from error
        is_link = stat.S_ISLNK(found.st_mode)
        yield entry, found, not rest and not is_link
        if is_link:
            links += 1
            if links > _LINK_LIMIT:
                return
            target = os.readlink(entry)
            at = "/" if target.startswith("/") else at
            rest = [part for part in target.split("/") if part] + rest
        else:
            at = entry


def _user(uid: int) -> str:
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"uid {uid}"


def _has_access_list(path: str) -> bool:
    try:
        return _ACCESS_LIST in os.listxattr(path, follow_symlinks=False)
    except OSError:
        return False


def _others_in(gid: int, trusted: Collection[int]) -> str:
    """The group, with members who are not trusted; "" without such members."""
    try:
        group = grp.getgrgid(gid)
    except KeyError:
        return f"group {gid}, which has no name"
    users = {user.pw_name: user for user in pwd.getpwall()}
    members = [name for name in group.gr_mem if name not in users]
    members += [
        user.pw_name
        for user in users.values()
        if user.pw_uid not in trusted and (user.pw_gid == gid or user.pw_name in group.gr_mem)
    ]
    return f"group {group.gr_name} ({', '.join(sorted(members)[:3])})" if members else ""
