"""Facts on the producer of a model: who saved it, where, from which program and revision.

Read once for each archive, without running another program. Unknown facts are left out.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Collection, Mapping

_FACTS = {
    "host": "host",
    "user": "user",
    "image": "image",
    "git": "git_revision",
    "service": "service",
    "opscope": "opscope_version",
}
"""The facts by the setting's words."""

_IMAGE_VARIABLES = ("OPSCOPE_IMAGE", "CONTAINER_IMAGE", "IMAGE_NAME")
_REVISION_VARIABLES = ("OPSCOPE_GIT_REVISION", "GIT_COMMIT", "GITHUB_SHA", "CI_COMMIT_SHA")


def select(words: Collection[str], known: Mapping[str, str]) -> dict[str, str]:
    """The facts that these words of the setting `producer` select; `known` are the caller's."""
    names = {_FACTS[word] for word in words}
    return {key: value for key, value in (facts() | dict(known)).items() if key in names}


def facts() -> dict[str, str]:
    """Host, user, program, time and, if known, image and git revision."""
    found = {
        "host": socket.gethostname(),
        "user": _user(),
        "program": sys.argv[0] if sys.argv else "",
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "image": _first(_IMAGE_VARIABLES),
        "git_revision": _first(_REVISION_VARIABLES) or _git_revision(os.getcwd()),
    }
    return {key: value for key, value in found.items() if value}


def _user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _first(variables: tuple[str, ...]) -> str:
    return next((os.environ[name] for name in variables if os.environ.get(name)), "")


def _git_revision(directory: str) -> str:
    """The revision of the checkout that holds the directory, read from its files without git."""
    while not os.path.isdir(os.path.join(directory, ".git")):
        directory, below = os.path.dirname(directory), directory
        if directory == below:
            return ""
    try:
        head = _read(os.path.join(directory, ".git", "HEAD"))
        reference = head.removeprefix("ref: ")
        if reference == head:
            return head
        path = os.path.join(directory, ".git", reference)
        if os.path.exists(path):
            return _read(path)
        packed = _read(os.path.join(directory, ".git", "packed-refs")).splitlines()
        return next((line.split()[0] for line in packed if line.endswith(f" {reference}")), "")
    except OSError:
        return ""


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read().strip()
