"""An archive's files: version and byte order, JSON documents, extra files."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from typing import Any

from opscope._tensor import Tensor, dtype, open_archive, write_archive

VERSION = 1
MODEL = "model.json"
_FOLDER = "archive"
_EXTRA = "extra/"


def start_of(path: str | os.PathLike[str], count: int) -> bytes:
    """The file's first bytes. Raises OSError, and ValueError if it is no regular file."""
    # Not blocking: opening a named pipe would wait for its writer.
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if stat.S_ISDIR(os.fstat(file).st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise ValueError(f"{os.fspath(path)}: not a regular file")
        return os.read(file, count)
    finally:
        os.close(file)


class Archive:
    """An open archive; `entries` has (bytes, bytes in the file, offset, CRC-32) by name."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._core = open_archive(self.path)
        self.entries = self._core.entries()

    @property
    def folder(self) -> str:
        return self._core.folder

    def read(self, name: str) -> bytes:
        """The content of an entry. ValueError if it is missing or damaged."""
        try:
            return self._core.read(name)
        except KeyError:
            raise self.fault(name, "there is no such entry") from None

    def text(self, name: str) -> str:
        try:
            return self.read(name).decode()
        except UnicodeDecodeError as error:
            raise self.fault(name, f"not UTF-8: {error}") from None

    def json(self, name: str) -> Any:
        try:
            return json.loads(self.text(name))
        except (json.JSONDecodeError, RecursionError) as error:
            raise self.fault(name, f"not JSON: {error}") from None

    def tensor(self, name: str, dtype: dtype) -> Tensor:
        """A tensor of one dimension over the entry's bytes."""
        try:
            return self._core.tensor(name, dtype)
        except KeyError:
            raise self.fault(name, "there is no such entry") from None

    def fault(self, name: str, reason: str) -> ValueError:
        """The error that names file, entry and reason."""
        return ValueError(f'{self.path}: entry "{name}": {reason}')

    def fault_in(self, name: str) -> Callable[[str], ValueError]:
        return lambda reason: self.fault(name, reason)

    def field(self, document: Any, key: str, name: str) -> Any:
        """A field of the JSON object in the entry `name`."""
        if not isinstance(document, dict) or key not in document:
            raise self.fault(name, f"the field {key!r} is missing")
        return document[key]

    def check_format(self) -> None:
        """ValueError for an archive of a later version, or of a machine of the other byte order."""
        version = self.text("version").strip()
        if version != str(VERSION):
            raise self.fault("version", f"version {version[:20]!r} of the format is unknown here")
        self.check_byteorder()

    def check_byteorder(self) -> None:
        order = self.text("byteorder").strip() if "byteorder" in self.entries else "little"
        if order != "little":
            raise self.fault("byteorder", f"byte order {order[:20]!r} is not supported")

    def extra_names(self) -> list[str]:
        return [name.removeprefix(_EXTRA) for name in self.entries if name.startswith(_EXTRA)]

    def extra(self, name: str) -> bytes:
        """The content of an extra file; KeyError without it."""
        if _EXTRA + name not in self.entries:
            known = ", ".join(self.extra_names()) or "none"
            raise KeyError(f"{self.path} has no extra file {name!r}; it has: {known}")
        return self.read(_EXTRA + name)

    def fill(self, wanted: MutableMapping[str, bytes | None] | None) -> None:
        for name in list(wanted or ()):
            wanted[name] = self.extra(name)  # type: ignore[index]


def write(
    path: str | os.PathLike[str],
    documents: Mapping[str, Any],
    tensors: Iterable[tuple[str, Any]],
    extra_files: Mapping[str, bytes | str],
    texts: Mapping[str, str] | None = None,
) -> None:
    """Replaces the file by an archive with these texts, JSON documents, storages and extra
    files."""
    entries: list[tuple[str, Any]] = [
        ("version", f"{VERSION}\n".encode()),
        ("byteorder", b"little"),
        *((name, text.encode()) for name, text in (texts or {}).items()),
        *((name, json.dumps(document).encode()) for name, document in documents.items()),
        *tensors,
    ]
    for name, content in extra_files.items():
        if not isinstance(content, bytes | str):
            raise TypeError(f"extra file {name!r} must be bytes or str, not {type(content)!r}")
        entries.append((_EXTRA + name, content.encode() if isinstance(content, str) else content))
    write_archive(path, _FOLDER, entries)
