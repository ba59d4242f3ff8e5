"""Write each dashboard as JSON into a folder, by default dashboards/grafana."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

from dashboards.source import fleet, hosts, model, operator, self_monitoring, serving, usage
from dashboards.source.blocks import TAG
from dashboards.source.choices import OF_SERVICE

MAKERS = (
    fleet.make,
    operator.make,
    model.make,
    serving.make,
    hosts.make,
    usage.make,
    self_monitoring.make,
)
FOLDER = Path(__file__).parents[1] / "grafana"


def _posted(name: str, tag: str, color: str) -> dict[str, Any]:
    """Annotations that `opscope annotate` and `opscope trace --annotate` post."""
    return {
        "name": name,
        "datasource": {"type": "grafana", "uid": "-- Grafana --"},
        "enable": True,
        "iconColor": color,
        "target": {"type": "tags", "tags": [tag], "matchAny": False, "limit": 100},
    }


ANNOTATIONS = [
    _posted("Releases", TAG, "blue"),
    _posted("Captures", f"{TAG}-capture", "purple"),
    {
        # From the data, for versions that nobody announced: the value is the time.
        "name": "First data of a version",
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "enable": True,
        "iconColor": "light-blue",
        "expr": f"1000 * opscope:version_first_seen:timestamp{{{OF_SERVICE}}}",
        "useValueForTime": "on",
        "step": "60s",
        "titleFormat": "{{service_name}} {{version}}",
        "textFormat": "first data",
    },
]


def documents() -> dict[str, str]:
    """The text of each file, by name."""
    encoder = JSONEncoder(sort_keys=True, indent=1)
    made = [make() for make in MAKERS]
    return {f"{board.uid}.json": encoder.encode(_as_grafana(board)) + "\n" for board in made}


def _as_grafana(board: Dashboard) -> dict[str, Any]:
    """Without defaults that the SDK writes and Grafana's current schema lacks."""
    document: dict[str, Any] = json.loads(JSONEncoder().encode(board))
    document.pop("style", None)
    document["annotations"] = {"list": ANNOTATIONS}
    for variable in document["templating"]["list"]:
        for name in ("auto", "auto_count", "auto_min", "id"):
            variable.pop(name, None)
    for panel in document["panels"]:
        panel["options"].pop("footer", None)
        if panel["type"] == "heatmap":
            panel["options"]["tooltip"] = {"mode": "single"}
    return document


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in documents().items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
