"""Names that fit into a column: cut in the middle, and no two of them to the same text.

Operators of one family differ at their ends (`conv2d_weight_backward`, `conv2d_bias_backward`), so
a cut at the end would make them equal. Widths are in columns of a terminal: a Chinese character
has two.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from rich.cells import cell_len

_MARK = "…"


def shortened(names: Sequence[str], width: int) -> dict[str, str]:
    """The text of each name, at most `width` columns, and different for different names.

    Only with fewer than about three columns, too few for numbers, texts may be equal or longer.
    """
    width = max(width, 1)
    texts = {
        name: _cut(name, width, (width - 1) - (width - 1) // 2) for name in dict.fromkeys(names)
    }
    for alike in _alike(texts):
        for name, text in _told_apart(alike, width).items():
            texts[name] = text
    # A text may by chance be that of a name outside its group: numbers tell any names apart.
    for alike in _alike(texts):
        texts |= _numbered(alike, width)
    return texts


def _cut(name: str, width: int, head: int) -> str:
    """The first `head` columns, the mark, and the last ones."""
    if cell_len(name) <= width:
        return name
    return _first(name, head) + _MARK + _first(name[::-1], width - 1 - head)[::-1]


def _first(text: str, width: int) -> str:
    """As many characters as have at most `width` columns together."""
    kept = text[: max(width, 0)]
    while cell_len(kept) > width > 0:
        kept = kept[:-1]
    return kept


def _alike(texts: dict[str, str]) -> list[list[str]]:
    """Groups of names with the same text."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for name, text in texts.items():
        groups[text].append(name)
    return [sorted(group) for group in groups.values() if len(group) > 1]


def _told_apart(names: list[str], width: int) -> dict[str, str]:
    """Cut at another place, the nearest to the middle where all differ; else numbered."""
    middle = width // 2
    for head in sorted(range(width), key=lambda head: abs(head - middle)):
        texts = {name: _cut(name, width, head) for name in names}
        if len({*texts.values()}) == len(names):
            return texts
    return _numbered(names, width)


def _numbered(names: list[str], width: int) -> dict[str, str]:
    found = {}
    for number, name in enumerate(sorted(names), 1):
        end = f"{_MARK}{number}"
        found[name] = _first(name, width - len(end)) + end
    return found
