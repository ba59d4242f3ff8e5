"""The bridges' declarations about their operators, for display and probes. Attaches nothing."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from opscope import bridges


class Bridge(NamedTuple):
    """The declarations of a bridge (opscope/bridges/__init__.py)."""

    framework: str
    prefixes: tuple[str, ...]
    names: re.Pattern[str] | None
    foreign_prefixes: bool
    probe: tuple[str, str] | None
    host: str
    """The framework to import for the probe."""


@cache
def known() -> tuple[Bridge, ...]:
    """All bridges that can be imported here, by framework."""
    found = []
    for framework in sorted((*bridges.modules(), *bridges.GUESTS)):
        try:
            found.append(_declared(bridges.load(framework)))
        except Exception:
            continue  # a broken bridge of another distribution; processes that use it report it
    return tuple(found)


def _declared(module: Any) -> Bridge:
    names = getattr(module, "NAMES", "")
    return Bridge(
        framework=module.FRAMEWORK,
        prefixes=tuple(getattr(module, "PREFIXES", (module.FRAMEWORK,))),
        names=re.compile(names) if names else None,
        foreign_prefixes=getattr(module, "FOREIGN_PREFIXES", False),
        probe=getattr(module, "PROBE", None),
        host=bridges.GUESTS.get(module.FRAMEWORK) or module.FRAMEWORK,
    )


def framework_of(op: str) -> str | None:
    """The framework of the operator with this name; None if no bridge claims it."""
    for framework, is_name in _names():
        if is_name(op):
            return framework
    return framework_of_prefix(op)


def framework_of_prefix(op: str) -> str | None:
    """The same, by the part of the name before `::` only."""
    prefix, colons, _ = op.partition("::")
    return _prefixes().get(prefix) if colons else None


def framework_of_others() -> str | None:
    """The imported framework whose bridge sees operators of any prefix; None without one."""
    return next(
        (one.framework for one in known() if one.foreign_prefixes and one.framework in sys.modules),
        None,
    )


@cache
def _names() -> tuple[tuple[str, Callable[[str], object]], ...]:
    return tuple((one.framework, one.names.match) for one in known() if one.names is not None)


@cache
def _prefixes() -> dict[str, str]:
    return {prefix: one.framework for one in known() for prefix in one.prefixes}
