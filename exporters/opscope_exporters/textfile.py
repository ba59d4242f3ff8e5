"""Writes the page to a file, for the textfile collector of Prometheus's node_exporter.

The file is replaced atomically, since the collector may read it at any time. The collector reads
files that end in `.prom`, have Prometheus's text format, and are readable for its user.
https://github.com/prometheus/node_exporter#textfile-collector
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from opscope.errors import AgentError, ConfigError
from opscope.replace_file import remove_remains, replace_file
from opscope.server.exporter import Option, Options, PushExporter
from opscope_exporters.resource import target_labels
from opscope_exporters.samples import OCTAVES, ClassicBuckets

if TYPE_CHECKING:
    from opscope.host.snapshot import Snapshot

OPTIONS = (
    Option("path", "", "file to write, in the collector's directory; its name ends in .prom"),
    Option("interval_s", 15.0, "seconds between writes", least=0.1),
    OCTAVES,
)


def create(options: Options) -> PushExporter:
    """Raises ConfigError for a path that the collector would not read."""
    path = options["path"]
    if not os.path.isabs(path) or not path.endswith(".prom"):
        raise ConfigError(
            f"exporter textfile: path={path!r}: must be absolute and end in .prom; set it with "
            "--textfile-path or OPSCOPE_TEXTFILE_PATH"
        )
    return Textfile(path, options["interval_s"], options["octaves"])


class Textfile:
    def __init__(self, path: str, interval_s: float, octaves: float = 1.0) -> None:
        from opscope_exporters.distinct import Distinct
        from opscope_exporters.prometheus.text_page import TextPage

        self.interval_s = interval_s
        self._path = path
        self._page = TextPage(ClassicBuckets(octaves))
        self._target = target_labels()
        self._distinct = Distinct()
        remove_remains(path)

    def export(self, snapshot: Snapshot) -> None:
        snapshot = self._distinct.of(snapshot)
        page = self._page.write(snapshot, openmetrics=False, target=self._target)
        try:
            replace_file(self._path, b"".join(page), mode=0o644)
        except OSError as error:
            raise AgentError(f"cannot write {self._path}: {error.strerror}") from error

    def close(self) -> None:
        """Does nothing: the last page stays, with the last known numbers."""
