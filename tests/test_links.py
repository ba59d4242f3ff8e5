"""Relative links between the Markdown files lead to existing files and headings."""

import re
from collections import Counter
from pathlib import Path

import pytest

from tests.test_repository import ROOT, tracked_files

_LINK = re.compile(r"!?\[[^\]]*\]\(([^()\s]+)\)")
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)
_ELSEWHERE = re.compile(r"[a-z]+:")


def documents() -> list[str]:
    return [str(path) for path in tracked_files() if path.suffix == ".md"]


def anchors(text: str) -> set[str]:
    """Of the headings, as GitHub makes them."""
    found: set[str] = set()
    counts: Counter[str] = Counter()
    for heading in _HEADING.findall(_FENCED.sub("", text)):
        anchor = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        found.add(f"{anchor}-{counts[anchor]}" if counts[anchor] else anchor)
        counts[anchor] += 1
    return found


def broken(document: Path, text: str) -> list[str]:
    """The relative links in `text`, as it stands in `document`, that lead nowhere."""
    links = _LINK.findall(_FENCED.sub("", text))
    return [
        link
        for link in links
        if not _ELSEWHERE.match(link) and not _leads_somewhere(document, text, link)
    ]


def _leads_somewhere(document: Path, text: str, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = (document.parent / name).resolve() if name else document
    if not target.is_relative_to(ROOT) or not target.exists():
        return False
    return not anchor or anchor in anchors(target.read_text() if name else text)


@pytest.mark.parametrize("document", documents())
def test_every_relative_link_leads_somewhere(document: str) -> None:
    assert broken(ROOT / document, (ROOT / document).read_text()) == []


def test_a_link_to_nothing_is_found() -> None:
    text = "# A heading: `x`\n[a](missing.md) [b](#a-heading-x) [c](#other) [d](https://x.y/z)"
    assert broken(ROOT / "README.md", text) == ["missing.md", "#other"]
