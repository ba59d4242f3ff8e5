"""Find rules of a settings file that have no effect on any service.

The last matching rule for a key wins, and a reset cancels the rules above it. So a rule has no
effect if later rules match every service that it matches and set every key that it sets. A reset
has no effect if no rule above it can match one of its services. If the two globs do not show this
for certain, the rule stays.
"""

from __future__ import annotations

from collections.abc import Sequence

from opscope.attachment.settings_file import RESET, Rule, matches
from opscope.errors import ConfigError
from opscope.record.settings_change import ALL, SAMPLING, WINDOWS, parse

_HOW = SAMPLING | WINDOWS
"""Sampling and windows replace each other."""
_UNREAD = ~ALL
_SPECIAL = frozenset("*?[")


def thinned(rules: Sequence[Rule]) -> list[Rule]:
    """The rules that have an effect, in their order."""
    kept: list[Rule] = []
    for rule in reversed(rules):
        # An unreadable rule stays for its writer, unless a reset hides it.
        if (_bits(rule) or _UNREAD) & ~_given_by(kept, rule.service):
            kept.append(rule)
    found: list[Rule] = []
    for rule in reversed(kept):
        if rule.word != RESET or any(_may_meet(one.service, rule.service) for one in found):
            found.append(rule)
    return found


def _bits(rule: Rule) -> int:
    """The keys that the rule sets, as bits: all for a reset, 0 for an unreadable rule."""
    if rule.word == RESET:
        return ~0
    try:
        given = parse([rule.word]).given
    except ConfigError:
        return 0
    return given | _HOW if given & _HOW else given


def _given_by(later: Sequence[Rule], service: str) -> int:
    """The keys that these rules set for every service of that glob, as bits."""
    bits = 0
    for rule in later:
        if _covers(rule.service, service):
            bits |= _bits(rule)
    return bits


def _covers(wide: str, narrow: str) -> bool:
    """Whether `wide` certainly matches every service that `narrow` matches."""
    if wide in ("*", narrow):
        return True
    if not _SPECIAL & set(narrow):
        return matches(narrow, wide)
    stem = wide.removesuffix("*")
    return wide != stem and not _SPECIAL & set(stem) and _stem(narrow).startswith(stem)


def _may_meet(one: str, other: str) -> bool:
    """Whether some service may match both globs."""
    for glob, name in ((one, other), (other, one)):
        if not _SPECIAL & set(name):
            return matches(name, glob)
    stem, other_stem = _stem(one), _stem(other)
    return stem.startswith(other_stem) or other_stem.startswith(stem)


def _stem(glob: str) -> str:
    """The common prefix of all services that the glob matches."""
    for place, character in enumerate(glob):
        if character in _SPECIAL:
            return glob[:place]
    return glob
