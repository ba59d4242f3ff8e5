"""What runs the agent: the revision of its source, and the version of Python.

The revision is what the package's installer recorded of it (PEP 610), or, for an editable install,
what is checked out, or what the Dockerfile was given. A release from a package registry has none:
its version names a tag.
"""

from __future__ import annotations

import json
import platform
import re
from functools import cache
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LIMIT = 1 << 20
_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@cache
def revision() -> str:
    """A commit's hash, or ""."""
    try:
        installed = metadata.distribution("opscope")
        origin = json.loads(installed.read_text("direct_url.json") or "{}")
        if commit := origin.get("vcs_info", {}).get("commit_id"):
            return _known(str(commit))
        url = urlsplit(origin.get("url", ""))
        if origin.get("dir_info", {}).get("editable") and url.scheme == "file":
            return checked_out(Path(unquote(url.path)))
        return _known((installed.read_text("REVISION") or "").strip())
    except (metadata.PackageNotFoundError, OSError, ValueError, AttributeError):
        pass
    return ""


def checked_out(tree: Path) -> str:
    """The commit that is checked out in that work tree, or "". Runs no program.

    https://git-scm.com/docs/gitrepository-layout has the facts: HEAD names a commit, or a reference
    that is a file of its own or a line of packed-refs.
    """
    git = tree / ".git"
    try:
        if git.is_file():  # A further work tree, or a submodule.
            git = tree / _read(git).removeprefix("gitdir:").strip()
        head = _read(git / "HEAD").strip()
        if not head.startswith("ref:"):
            return _known(head)
        name = head.removeprefix("ref:").strip()
        shared = git
        if (git / "commondir").is_file():
            shared = git / _read(git / "commondir").strip()
        for folder in (git, shared):
            if (folder / name).is_file():
                return _known(_read(folder / name).strip())
        for line in _read(shared / "packed-refs").splitlines():
            commit, _, packed = line.partition(" ")
            if packed == name:
                return _known(commit)
    except (OSError, ValueError):
        pass
    return ""


def python_version() -> str:
    """For example 3.12.4, or PyPy 3.10.14."""
    name, version = platform.python_implementation(), platform.python_version()
    return version if name == "CPython" else f"{name} {version}"


def _read(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.read(_LIMIT)


def _known(text: str) -> str:
    return text if _HASH.fullmatch(text) else ""
