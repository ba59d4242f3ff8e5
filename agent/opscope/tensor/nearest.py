"""The errors for names that do not exist: they name the nearest spelling that does."""

from __future__ import annotations

from collections.abc import Iterable


class _MissingNameError(AttributeError):
    """Finds the nearest spelling when it is asked for its text: `hasattr` never asks."""

    __module__, __qualname__ = "builtins", "AttributeError"  # as tracebacks show it

    def __init__(self, owner: str, name: str, known: Iterable[str]) -> None:
        super().__init__()
        self._text = f"module '{owner}' has no attribute {name!r}"
        self._name, self._known = name, known

    def __str__(self) -> str:
        return self._text + _nearest(self._name, self._known)

    def __repr__(self) -> str:
        return f"AttributeError({str(self)!r})"

    def __reduce__(self) -> tuple[type[AttributeError], tuple[str]]:
        return AttributeError, (str(self),)


def missing(owner: str, name: str, known: Iterable[str]) -> AttributeError:
    """The AttributeError for `owner.name`, with the most similar of the known names."""
    return _MissingNameError(owner, name, known)


def _nearest(name: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    names = sorted(each for each in set(known) if not each.startswith("_"))
    lowered = {each.lower(): each for each in names}
    near = [lowered[each] for each in get_close_matches(name.lower(), lowered, 3, 0.6)]
    if not near:
        return ""
    also = f" (also: {', '.join(near[1:])})" if near[1:] else ""
    return f"; the nearest spelling is {near[0]!r}{also}"
