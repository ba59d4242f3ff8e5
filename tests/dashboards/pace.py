"""Rules with accelerated or slowed time: multiplies every duration in them by a pace, the real
length of one of their seconds."""

import re

from tests.dashboards.openings import seconds


def paced(duration: str, pace: float) -> str:
    """Seconds of a duration such as 15s or 3h."""
    return f"{1000 * seconds(duration) * pace:.0f}ms"


def in_rules(text: str, pace: float) -> str:
    """The rules with every duration multiplied by that pace."""
    pattern = r"(\[|offset |interval: |for: )(\d+[smhd])"
    return re.sub(pattern, lambda found: found[1] + paced(found[2], pace), text)
