"""Runs programs with the committed configurations, changed only in addresses and times."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.dashboards.documents import FOLDER
from tests.dashboards.live import EVALUATION_S, write_rules
from tests.exporters.peers import Prometheus, Store, running

STATIC = "127.0.0.1:9464"
"""The target in prometheus.yml."""
SERIES, SUMS = "http://mimir.example:9009/api/v1/push", "http://thanos.example:19291/api/v1/receive"
"""Where prometheus-remote-write.yml writes to."""


def configuration(name: str, replaced: Mapping[str, str]) -> str:
    """The text of dashboards/NAME with replacements, each of which must occur in it."""
    text = (FOLDER / name).read_text()
    for what, by in replaced.items():
        assert what in text, f"{name} has no {what}"
        text = text.replace(what, by)
    return text


@contextmanager
def prometheus(
    program: Path,
    directory: Path,
    name: str,
    replaced: Mapping[str, str] | None = None,
    options: Sequence[str] = (),
    targets: Sequence[dict[str, object]] = (),
) -> Iterator[Store]:
    """Runs with that configuration, in a new directory beside rules/ and targets/."""
    directory.mkdir()
    write_rules(directory / "rules")
    (directory / "targets").mkdir()
    write_targets(directory, targets)
    text = configuration(name, replaced or {})
    text = re.sub(r"(scrape|refresh)_interval: \w+", r"\1_interval: 1s", text)
    # The evaluation interval of rules without their own, such as alerts.
    often = f"global:\n  evaluation_interval: {EVALUATION_S}s\n"
    text = text.replace("global:\n", often) if "global:\n" in text else often + text
    (directory / "prometheus.yml").write_text(text)
    # By default it ends a minute later if a store does not answer.
    soon = "--storage.remote.flush-deadline=1s"
    store = Prometheus(program, directory / "prometheus.yml", soon, *options)
    with running(store.command):
        yield store


def write_targets(directory: Path, targets: Sequence[dict[str, object]]) -> None:
    """Replaces the targets that Prometheus scrapes."""
    new = directory / "targets" / "new"
    new.write_text(json.dumps([*targets]))
    new.rename(new.with_name("targets.json"))
