"""The .pth file that `opscope install` puts into an environment: written, recognised, removed.

Python's site module reads it at every start (https://docs.python.org/3/library/site.html): lines
that begin with `import` are run. Ours runs one file of the opscope that it names, and is silent
whatever may come: where that opscope has been removed, nothing happens.
"""

from __future__ import annotations

import errno
import os
import tempfile

from opscope.errors import OpscopeError

NAME = "opscope-attach.pth"

_FIRST = (
    "# Put here by `opscope install`, taken away by `opscope uninstall`; OPSCOPE_ENABLED=0 is off."
)
# site runs the line with exec(): one line, and plain enough for any Python to pass over.
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
        raise OpscopeError(f"{path}: install opscope under a path of plain ASCII characters")
    return f"{_FIRST}\n{_RUN.format(path=quoted)}\n"


def read(site: str) -> str | None:
    """Directory of the opscope that this environment starts with, None where it has no such file.

    Raises OpscopeError where a file of that name is there that `opscope install` has not written.
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
        raise OpscopeError(f"{path} is not as `opscope install` writes it; see to it yourself")
    return package


def put(site: str, package: str) -> bool:
    """Writes the file, whole or not at all; False where it is there already.

    Raises OpscopeError where it cannot be written, or one is there that is not ours.
    """
    path = os.path.join(site, NAME)
    content = text(package)
    if read(site) == package:
        return False
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=".opscope-attach-", suffix="~", dir=site)
        try:
            with open(descriptor, "w", encoding="ascii") as file:
                file.write(content)
                os.fchmod(file.fileno(), 0o644)
                os.fsync(file.fileno())
            os.rename(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise _refused("write", path, error) from error
    return True


def take(site: str) -> bool:
    """Removes the file; False where there is none.

    Raises OpscopeError where it cannot be removed, or the one that is there is not ours.
    """
    path = os.path.join(site, NAME)
    if read(site) is None:
        return False
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _refused("remove", path, error) from error
    return True


def _refused(verb: str, path: str, error: OSError) -> OpscopeError:
    advice = {
        errno.EACCES: "run this as the owner of that directory (sudo?)",
        errno.EROFS: "use `opscope install --payload` and PYTHONPATH",
    }.get(error.errno or 0, "")
    return OpscopeError(f"cannot {verb} {path}: {error.strerror}" + (advice and f"; {advice}"))
