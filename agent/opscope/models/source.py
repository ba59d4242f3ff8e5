"""An open file: its first bytes, and its archive if it is a zip file."""

from __future__ import annotations

import json
import os

from opscope.tensor.archive.files import Archive, start_of

PRODUCER = "producer_info.json"
_START_BYTES = 16
_VALUE_LIMIT = 1000


class Source:
    """A model's file. `archive` is None unless it is a zip file; `archive_fault` tells why a file
    that begins like one is not read. Raises OSError."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self.start = start_of(self.path, _START_BYTES)
        self.bytes = os.stat(self.path).st_size
        self.archive: Archive | None = None
        self.archive_fault: ValueError | None = None
        if self.start[:2] == b"PK":
            try:
                self.archive = Archive(self.path)
            except ValueError as error:
                self.archive_fault = error

    def has(self, name: str) -> bool:
        """Whether it is a zip file with this entry."""
        return self.archive is not None and name in self.archive.entries


def producer_of(content: bytes | None) -> dict[str, str]:
    """The facts in a `producer_info.json`; of one that is not ours, what can be shown."""
    if content is None:
        return {}
    try:
        facts = json.loads(content)
    except ValueError:
        return {PRODUCER: "not JSON"}
    if not isinstance(facts, dict):
        return {PRODUCER: "not an object"}
    return {str(key): str(value)[:_VALUE_LIMIT] for key, value in facts.items()}


def extra_files(archive: Archive) -> dict[str, bytes]:
    return {name: archive.extra(name) for name in archive.extra_names()}
