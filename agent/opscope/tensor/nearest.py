"""The errors for names that do not exist: they name the nearest spelling that does."""

from __future__ import annotations

from collections.abc import Iterable


def missing(owner: str, name: str, known: Iterable[str]) -> AttributeError:
    """The AttributeError for `owner.name`, with the most similar of the known names."""
    from difflib import get_close_matches

    names = sorted(each for each in set(known) if not each.startswith("_"))
    lowered = {each.lower(): each for each in names}
    near = [lowered[each] for each in get_close_matches(name.lower(), lowered, 3, 0.6)]
    text = f"module '{owner}' has no attribute {name!r}"
    if near:
        text += f"; the nearest spelling is {near[0]!r}"
        text += f" (also: {', '.join(near[1:])})" if near[1:] else ""
    return AttributeError(text)
