"""The .pth file that `opscope install` writes into an environment: write, recognize, remove.

Python's site module reads it at every start (https://docs.python.org/3/library/site.html) and runs
lines that begin with `import`. Opscope's line runs one file of the opscope that it names, and
ignores all errors: if that opscope has been removed, nothing happens.
"""

from __future__ import annotations

import errno
import os

from opscope.errors import OpscopeError
from opscope.replace_file import remove_remains, replace_file

NAME = "opscope-attach.pth"

_FIRST = "# Written by `opscope install`, removed by `opscope uninstall`; OPSCOPE_ENABLED=0 is off."
# site runs the line with exec(): a single line, in a syntax that any Python accepts.
_RUN = (
    'import sys; exec("try:\\n from _frozen_importlib_external import SourceFileLoader as L; '
    "m = type(sys)('opscope_path_file'); m.__file__ = {path}; "
    'L(m.__name__, m.__file__).exec_module(m)\\nexcept Exception: pass")'
)


def text(package: str) -> str:
    """The file's content, for the opscope in this directory."""
    path = os.path.join(package, "attachment", "site", "sitecustomize.py")
    quoted = ascii(path)
    if not quoted.startswith("'") or "\\" in quoted:
        # The line is a string within a string.
        raise OpscopeError(
            f"{path}: opscope must be installed under a path of plain ASCII characters"
        )
    return f"{_FIRST}\n{_RUN.format(path=quoted)}\n"


def read(site: str) -> str | None:
    """Directory of the opscope that this environment starts with; None without such a file.

    Raises OpscopeError for a file of that name that `opscope install` did not write.
    """
    path = os.path.join(site, NAME)
    try:
        with open(path, encoding="ascii") as file:
            found = file.read()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise OpscopeError(f"cannot read {path}: {error}") from error
    before, _, rest = found.partition("m.__file__ = '")
    package = os.path.dirname(os.path.dirname(os.path.dirname(rest.partition("'")[0])))
    if not before or found != text(package):
        raise OpscopeError(
            f"{path} was changed after `opscope install` wrote it; restore or remove it yourself"
        )
    return package


def put(site: str, package: str) -> bool:
    """Writes the file atomically; False if it already exists.

    Raises OpscopeError on failure, or for a file that `opscope install` did not write.
    """
    path = os.path.join(site, NAME)
    content = text(package)
    remove_remains(path)
    if read(site) == package:
        return False
    try:
        replace_file(path, content.encode("ascii"), mode=0o644, durable=True)
    except OSError as error:
        raise _refused("write", path, error) from error
    return True


def take(site: str) -> bool:
    """Removes the file; False if it does not exist.

    Raises OpscopeError on failure, or for a file that `opscope install` did not write.
    """
    path = os.path.join(site, NAME)
    remove_remains(path)
    if read(site) is None:
        return False
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _refused("remove", path, error) from error
    return True


def restore(site: str, package: str | None) -> None:
    """Restores the state that read() returned. Raises OpscopeError on failure."""
    if package is None:
        take(site)
    else:
        put(site, package)


def _refused(verb: str, path: str, error: OSError) -> OpscopeError:
    advice = {
        errno.EACCES: "run this as the owner of that directory (sudo?)",
        errno.EROFS: "use `opscope install --payload` and PYTHONPATH",
    }.get(error.errno or 0, "")
    return OpscopeError(f"cannot {verb} {path}: {error.strerror}" + (advice and f"; {advice}"))
