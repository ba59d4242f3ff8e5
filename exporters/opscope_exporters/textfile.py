"""Writes the page into a file, for the textfile collector of Prometheus's node_exporter.

The file is replaced whole, as that collector reads it at any moment. It takes files that end in
`.prom`, in Prometheus's own text format, readable for the user it runs as.
https://github.com/prometheus/node_exporter#textfile-collector
"""

from __future__ import annotations

import os
from contextlib import suppress

from opscope.agent.exporter import Option, Options, PushExporter
from opscope.agent.snapshot import Snapshot
from opscope.errors import AgentError, ConfigError
from opscope_exporters.resource import target_labels
from opscope_exporters.samples import ClassicBuckets
from opscope_exporters.text_page import TextPage

OPTIONS = (
    Option("path", "", "file to write: in the collector's directory, with a name ending in .prom"),
    Option("interval_s", 15.0, "seconds between two times it is written", least=0.1),
    Option("octaves", 2, "octaves between two bounds of a histogram: 1, 2 or 4", (1, 2, 4)),
)


def create(options: Options) -> PushExporter:
    """Raises ConfigError where the path is none that the collector would read."""
    path = options["path"]
    if not os.path.isabs(path) or not path.endswith(".prom"):
        raise ConfigError(
            f"exporter textfile: path={path!r}: must be absolute and end in .prom; set it with "
            "--textfile-path or OPSCOPE_TEXTFILE_PATH"
        )
    return Textfile(path, options["interval_s"], options["octaves"])


class Textfile:
    def __init__(self, path: str, interval_s: float, octaves: int = 2) -> None:
        self.interval_s = interval_s
        self._path = path
        self._page = TextPage(ClassicBuckets(octaves))
        self._target = target_labels()

    def export(self, snapshot: Snapshot) -> None:
        page = self._page.write(snapshot, openmetrics=False, target=self._target)
        # Not ending in .prom, so that the collector never sees half a file.
        new = f"{self._path}.new"
        try:
            with suppress(FileNotFoundError):
                os.unlink(new)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with os.fdopen(os.open(new, flags, 0o644), "wb") as file:
                os.fchmod(file.fileno(), 0o644)
                file.writelines(page)
            os.replace(new, self._path)
        except OSError as error:
            raise AgentError(f"{self._path} cannot be written: {error.strerror}") from error
        finally:
            with suppress(OSError):
                os.unlink(new)

    def close(self) -> None:
        """The last page stays: its numbers are the last ones known."""
