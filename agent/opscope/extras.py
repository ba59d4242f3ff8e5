"""The package's extras: whether one is installed, and the line that says how to install it.

pyproject.toml alone defines the extras; this reads them from the installed package's metadata.
Observed processes do not import this module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata

from opscope.errors import OpscopeError

# One of the package's requirements, such as `numpy>=1.26; extra == "agent"`.
_REQUIREMENT = re.compile(r"""([\w.-]+)\s*(?:>=\s*([\d.]+))?.*\bextra\s*==\s*["']([\w-]+)["']""")


def line(what: str, extra: str) -> str:
    """A line that says that `what` needs this extra, and how to install it."""
    return f"{what} needs the extra {extra!r}: pip install 'opscope[{extra}]'"


@contextmanager
def needed(what: str, extra: str) -> Iterator[None]:
    """Raises OpscopeError with that line if an import within the block fails."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise OpscopeError(line(what, extra)) from error


def is_installed(extra: str) -> bool:
    """Whether every package of the extra is installed, in a sufficient version.

    True if opscope itself has no metadata, as in a frozen program.
    """
    try:
        requirements = metadata.requires("opscope") or []
    except metadata.PackageNotFoundError:
        return True
    for requirement in requirements:
        found = _REQUIREMENT.match(requirement)
        # Skips requirements of some Python versions only: a TOML parser.
        if found and found[3] == extra and "python_version" not in requirement:
            try:
                version = metadata.version(found[1])
            except metadata.PackageNotFoundError:
                return False
            if _numbers(version) < _numbers(found[2] or ""):
                return False
    return True


def _numbers(version: str) -> list[int]:
    """The release part of a version: [8, 1] for 8.1rc2."""
    return [int(number) for number in re.findall(r"(?:^|\.)(\d+)", version)]
