"""Change the settings file, which processes read as they attach (attachment/settings_file.py).

The file is written whole under another name and renamed, so a reader sees the old rules or the new
ones. Every process reads all rules as it starts, so their number is bounded, and rules without
effect are dropped (shadowed.py).
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from opscope.attachment.settings_file import NAME, RESET, Rule, matches, read, rules
from opscope.control.shadowed import thinned
from opscope.errors import OpscopeError
from opscope.record.settings_change import SettingsChange
from opscope.replace_file import remove_remains, replace_file
from opscope.segments import directories
from opscope.segments.segment_file import SegmentError

_HEAD = """\
# Written by `opscope set`; each process reads it as it attaches. One rule a line: KEY=VALUE SERVICE
# (a glob, to the end of the line). The last matching rule for a key wins; `reset SERVICE` cancels
# the rules above it for these services.
"""
# Temporary files older than this belong to no running `opscope set`.
_REMAINS_AGE_S = 60.0
_RULE_LIMIT = 100
_GLOB_LIMIT = 256
"""Characters."""


def read_rules(directory: str) -> list[Rule]:
    """The rules of that directory. Raises OpscopeError if its file cannot be trusted."""
    try:
        with directories.opened(directory) as fd:
            return rules(read(fd) or "")
    except FileNotFoundError:
        return []
    except (SegmentError, OSError) as error:
        raise OpscopeError(f"{directory}/{NAME}: {error}") from error


def changed(found: Sequence[Rule], service: str, change: SettingsChange | None) -> list[Rule]:
    """The rules with `change` added for this glob of services; None resets all its settings.

    Raises OpscopeError for a glob that the file cannot hold, and for too many rules.
    """
    check_glob(service)
    words = [RESET] if change is None else change.words()
    rules = thinned([*found, *(Rule(word, service) for word in words)])
    if len(rules) > _RULE_LIMIT:
        raise OpscopeError(
            f"{len(rules)} rules for services are too many (at most {_RULE_LIMIT}): remove some "
            "with `opscope set --reset --service GLOB`, or all with `opscope set --reset --all`"
        )
    return rules


def check_glob(service: str) -> None:
    """Raises OpscopeError for a glob that would not read back from the file unchanged."""
    if not service.isprintable() or not service or service != service.strip():
        raise OpscopeError(
            f"{service!r} is not a valid glob: it must be printable, without surrounding blanks"
        )
    if len(service) > _GLOB_LIMIT:
        raise OpscopeError(f"a glob for services may have at most {_GLOB_LIMIT} characters")


def write_rules(directory: str, found: Sequence[Rule]) -> None:
    """Writes the rules; removes the file if `found` is empty. Raises OpscopeError on failure."""
    try:
        with directories.opened(directory) as fd:
            for rule in found:
                check_glob(rule.service)
            if found:
                text = _HEAD + "".join(f"{rule.word} {rule.service}\n" for rule in found)
                remove_remains(NAME, directory_fd=fd, age_s=_REMAINS_AGE_S)
                # Other users read the file that root writes.
                replace_file(NAME, text.encode(), directory_fd=fd, mode=0o644)
            else:
                _remove(fd)
    except (SegmentError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise OpscopeError(
            f"{directory}/{NAME}: {reason}: processes that start later keep their settings; "
            "only the directory's owner and root can change those"
        ) from error


def _remove(directory_fd: int) -> None:
    try:
        os.unlink(NAME, dir_fd=directory_fd)
    except FileNotFoundError:
        pass


def for_service(found: Sequence[Rule], service: str) -> list[Rule]:
    """The rules that match the service."""
    return [rule for rule in found if matches(service, rule.service)]
