"""What an exporter is, and how one is found: a module behind the entry point `opscope.exporters`.

The module has OPTIONS (each option's name and what it means) and `create(options)`, which returns a
PageExporter (asked for a page, as Prometheus does) or a PushExporter (given every snapshot). It
gets snapshots and nothing else; a third party adds one without a change here.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import metadata
from typing import Protocol, runtime_checkable

from opscope.agent.snapshot import Snapshot
from opscope.errors import AgentError

GROUP = "opscope.exporters"


@runtime_checkable
class PageExporter(Protocol):
    def page(self, snapshot: Snapshot, accept: str) -> tuple[bytes, str]:
        """The page and its content type, for a client that sent this Accept header ("": none).

        Called from several threads.
        """
        ...

    def close(self) -> None: ...


@runtime_checkable
class PushExporter(Protocol):
    def export(self, snapshot: Snapshot) -> None:
        """Sends the snapshot. What it raises is reported and changes nothing for the others."""

    def close(self) -> None:
        """Sends what is still to be sent, within a second or two."""


class ExporterModule(Protocol):
    OPTIONS: Mapping[str, str]

    def create(self, options: Mapping[str, str]) -> PageExporter | PushExporter: ...


def load(name: str, options: Mapping[str, str] | None = None) -> PageExporter | PushExporter:
    """The installed exporter of that name. Raises AgentError where there is none, or its options
    are others."""
    found = metadata.entry_points(group=GROUP)
    if name not in found.names:
        raise AgentError(f"no exporter {name!r}; installed: {', '.join(sorted(found.names))}")
    module: ExporterModule = found[name].load()
    given = dict(options or {})
    for option in given:
        if option not in module.OPTIONS:
            known = ", ".join(module.OPTIONS) or "none"
            raise AgentError(f"exporter {name}: no option {option!r}; known: {known}")
    return module.create(given)
