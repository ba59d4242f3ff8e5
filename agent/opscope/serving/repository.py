"""The models of a server by name and version: loaded, unloaded and replaced while requests run.

A replaced or unloaded version answers the requests that it has, and is freed then: a request never
notices. Used on the event loop's thread; files are read on another.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from opscope.errors import OpscopeError
from opscope.serving import loaded_model
from opscope.serving.executor import Executor
from opscope.serving.faults import Reason, RequestError

READY, LOADING, UNAVAILABLE = "READY", "LOADING", "UNAVAILABLE"
# In a metric's label, with the version and a reason.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_VERSION = re.compile(r"[1-9][0-9]{0,14}")


@dataclass(frozen=True)
class Source:
    """Where a version of a model comes from."""

    name: str
    version: str
    path: str


class State(NamedTuple):
    """An entry of the repository's index."""

    name: str
    version: str
    state: str
    reason: str


def parse_source(text: str) -> Source:
    """`NAME=ARCHIVE` or `NAME:VERSION=ARCHIVE`. Raises OpscopeError."""
    key, found, path = text.partition("=")
    name, _, version = key.partition(":")
    version = version or "1"
    if not found or not path:
        raise OpscopeError(f"{text!r} is not NAME=ARCHIVE or NAME:VERSION=ARCHIVE")
    if not _NAME.fullmatch(name):
        raise OpscopeError(
            f"{name!r} is no name of a model: letters, digits, _, . and -, at most 64"
        )
    if not _VERSION.fullmatch(version):
        raise OpscopeError(f"{version!r} is no version of a model: use 1, 2, 3 and so on")
    return Source(name, version, path)


class Repository:
    """All models that the server knows."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources: dict[str, dict[str, Source]] = {}
        for one in sources:
            versions = self._sources.setdefault(one.name, {})
            if one.version in versions:
                raise OpscopeError(f"two archives are version {one.version} of {one.name}")
            versions[one.version] = one
        self._loaded: dict[str, dict[str, Executor]] = {}
        self._reasons: dict[tuple[str, str], str] = {}
        self._changing: dict[str, asyncio.Lock] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._is_draining = False

    # ---- for requests --------------------------------------------------------------------------

    def find(self, name: str, version: str = "") -> Executor:
        """The version, by default the highest one that is loaded. Raises RequestError."""
        versions = self._loaded.get(name)
        if self._is_draining:
            raise RequestError(Reason.NOT_READY, "the server is shutting down")
        if not versions:
            if name in self._sources:
                raise RequestError(Reason.NOT_READY, f"the model {name} is not loaded")
            raise RequestError(Reason.UNKNOWN_MODEL, f"there is no model {name[:64]!r}")
        # Versions are in order.
        found = versions.get(version) if version else next(reversed(versions.values()))
        if found is None:
            raise RequestError(
                Reason.UNKNOWN_MODEL, f"the model {name} has no version {version[:16]!r} loaded"
            )
        return found

    def versions(self, name: str) -> list[str]:
        """The loaded versions of a model, in order."""
        return sorted(self._loaded.get(name, ()), key=int)

    def is_ready(self) -> bool:
        """Whether all models that should be loaded are, and the server takes requests."""
        return not self._is_draining and not self._reasons

    def index(self, *, only_ready: bool = False) -> list[State]:
        """All versions of all models."""
        return [
            state
            for name, versions in sorted(self._sources.items())
            for version in sorted(versions, key=int)
            if (state := self._state(name, version)).state == READY or not only_ready
        ]

    def _state(self, name: str, version: str) -> State:
        if version in self._loaded.get(name, ()):
            return State(name, version, READY, "")
        lock = self._changing.get(name)
        if lock is not None and lock.locked():
            return State(name, version, LOADING, "")
        return State(name, version, UNAVAILABLE, self._reasons.get((name, version), "unloaded"))

    # ---- changes -------------------------------------------------------------------------------

    async def load_all(self) -> None:
        """Loads all models. Raises OpscopeError for the first that cannot be loaded."""
        for name in self._sources:
            await self.load(name)

    async def load(self, name: str, description: str | None = None) -> None:
        """Loads or reloads all versions of a model; those of before answer until then.

        Raises OpscopeError if one cannot be loaded: then all stay as they were. Raises
        RequestError for an unknown name.
        """
        sources = self._known(name)
        async with self._changing.setdefault(name, asyncio.Lock()):
            made = {}
            for version, source in sorted(sources.items(), key=lambda item: int(item[0])):
                try:
                    made[version] = await asyncio.to_thread(
                        loaded_model.load, name, version, source.path, description
                    )
                except OpscopeError as error:
                    if version not in self._loaded.get(name, ()):
                        self._reasons[name, version] = str(error)
                    raise
            replaced = self._loaded.get(name, {})
            self._loaded[name] = {version: Executor(model) for version, model in made.items()}
            self._forget_reasons(name)
            self._close(replaced.values())

    async def unload(self, name: str) -> None:
        """Takes no more requests for a model; those that it has are answered. Raises
        RequestError for an unknown name."""
        self._known(name)
        async with self._changing.setdefault(name, asyncio.Lock()):
            self._forget_reasons(name)
            self._close(self._loaded.pop(name, {}).values())

    async def drain(self) -> None:
        """Takes no more requests, and waits for the answers of all others."""
        self._is_draining = True
        for versions in self._loaded.values():
            self._close(versions.values())
        await asyncio.gather(*self._closing)

    def _known(self, name: str) -> dict[str, Source]:
        found = self._sources.get(name)
        if found is None:
            raise RequestError(Reason.UNKNOWN_MODEL, f"there is no model {name[:64]!r}")
        return found

    def _forget_reasons(self, name: str) -> None:
        self._reasons = {key: text for key, text in self._reasons.items() if key[0] != name}

    def _close(self, executors: Iterable[Executor]) -> None:
        for one in executors:
            task = asyncio.ensure_future(one.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
