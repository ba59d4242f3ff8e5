"""Rules of a time that runs faster or slower: every duration in them at a pace, which is how long
a second of theirs lasts."""

import re

from tests.dashboards.openings import seconds


def paced(duration: str, pace: float) -> str:
    """Of a duration such as 15s or 3h."""
    return f"{1000 * seconds(duration) * pace:.0f}ms"


def in_rules(text: str, pace: float) -> str:
    """Rules with every duration in them at that pace."""
    pattern = r"(\[|offset |interval: |for: )(\d+[smhd])"
    return re.sub(pattern, lambda found: found[1] + paced(found[2], pace), text)
