"""The uses of APIs that wait to be sent, and those that were.

A file keeps the latter over the agent's restarts. A process that runs is in each snapshot with all
its uses, so the queue only holds what fits; uses of ended processes beyond that are dropped. The
file is written after a use was sent: an agent that is killed between the two sends it again, with
the same uid.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from opscope.errors import AgentError
from opscope.replace_file import remove_remains, replace_file

if TYPE_CHECKING:
    from opscope.host.snapshot import Process, Snapshot

_VERSION = 1
# A process is forgotten this long after the last snapshot with it; a pass may leave some out.
_FORGET_S = 3600
# Names of services arrive a moment after the recorder has started.
_NAMED_NS = 10 * 10**9
# Remembered uses. A host with 500 PyTorch programs has some 25,000.
_REMEMBERED = 1 << 18
_FILE_BYTES = 64 << 20


class Use(NamedTuple):
    """The first use of an API by a process."""

    process: str
    """Its identity within a boot of the host."""
    pid: int
    api: str
    service: str
    group: str
    seen_unix_ns: int


class _Known:
    """What one process used."""

    __slots__ = ("queued", "seen_s", "sent")

    def __init__(self, sent: set[str]) -> None:
        self.seen_s = 0
        """Unix s of the last snapshot that had the process."""
        self.sent = sent
        """Digests of APIs that a receiver has taken."""
        self.queued: set[str] = set()
        """Digests of those that wait, or that a receiver refused."""


class Queue:
    def __init__(self, path: str, boot: str, limit: int) -> None:
        """`path`: the file. `boot`: the host's boot, which pids belong to. `limit`: uses."""
        self._path, self._boot, self._limit = path, boot, limit
        self._waiting: deque[Use] = deque()
        self._processes = _load(path, boot)
        self._remembered = sum(len(one.sent) for one in self._processes.values())
        self._seen = 0
        """Uses of ended processes in all snapshots so far, as Snapshot.ended_gone counts them."""
        self._has_changed = False

    def add(self, snapshot: Snapshot) -> int:
        """Queues new uses; returns how many were dropped since the last call."""
        now_s = snapshot.time_unix_ns // 10**9
        dropped = max(snapshot.ended_gone - self._seen, 0)
        self._seen = snapshot.ended_gone + sum(len(one.usage) for one in snapshot.ended)
        for process in (*snapshot.processes, *snapshot.ended):
            if process.usage and _is_named(process, snapshot.time_unix_ns):
                missed = self._add(process, snapshot.time_unix_ns)
                # The next snapshot has those of a live process again.
                if not process.is_alive or self._remembered >= _REMEMBERED:
                    dropped += missed
        for name, known in [*self._processes.items()]:
            known.seen_s = known.seen_s or now_s
            if known.seen_s < now_s - _FORGET_S:
                self._remembered -= len(known.sent) + len(known.queued)
                del self._processes[name]
                self._has_changed = True
        return dropped

    def _add(self, process: Process, now_ns: int) -> int:
        """Returns how many uses found no room."""
        name = f"{process.uid}-{process.pid_namespace}-{process.pid}-{process.process_start}"
        known = self._processes.setdefault(name, _Known(set()))
        known.seen_s = now_ns // 10**9
        missed = 0
        for api, service in process.usage:
            digest = _digest(api)
            if digest in known.sent or digest in known.queued:
                continue
            if len(self._waiting) >= self._limit or self._remembered >= _REMEMBERED:
                missed += 1
                continue
            known.queued.add(digest)
            self._remembered += 1
            self._waiting.append(Use(name, process.pid, api, service, process.group, now_ns))
        return missed

    def first(self, count: int) -> list[Use]:
        return [self._waiting[at] for at in range(min(count, len(self._waiting)))]

    def sent(self, uses: Sequence[Use]) -> None:
        """Removes the first uses, which the receiver has."""
        self.refused(uses)
        for use in uses:
            known, digest = self._processes.get(use.process), _digest(use.api)
            if known is not None and digest in known.queued:
                known.queued.remove(digest)
                known.sent.add(digest)
        self._has_changed = True

    def refused(self, uses: Sequence[Use]) -> None:
        """Removes the first uses. The file does not have them: an agent that starts later, perhaps
        with another receiver, sends those of processes that still run."""
        for _ in uses:
            self._waiting.popleft()

    def save(self) -> None:
        """Raises AgentError."""
        if not self._has_changed:
            return
        facts = {
            "version": _VERSION,
            "boot": self._boot,
            "sent": {
                name: sorted(known.sent) for name, known in self._processes.items() if known.sent
            },
        }
        try:
            replace_file(self._path, json.dumps(facts).encode(), mode=0o600)
        except OSError as error:
            raise AgentError(
                f"sent, but cannot write {self._path} ({error.strerror}): log records will be sent "
                "again after a restart of the agent; set --otlp-logs-sent-file"
            ) from error
        self._has_changed = False


def _is_named(process: Process, now_ns: int) -> bool:
    is_old = now_ns - process.created_unix_ns >= _NAMED_NS
    return is_old or not process.is_alive or "service.name" in process.notes


def _digest(api: str) -> str:
    return blake2b(api.encode(errors="replace"), digest_size=8).hexdigest()


def _load(path: str, boot: str) -> dict[str, _Known]:
    """What the file says of this boot; nothing if it is missing or not readable."""
    remove_remains(path)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(fd, "rb") as file:
            if os.fstat(fd).st_uid != os.geteuid():
                return {}
            facts: Any = json.loads(file.read(_FILE_BYTES))
        if facts["version"] != _VERSION or facts["boot"] != boot:
            return {}
        return {
            str(name): _Known(set(map(str, digests))) for name, digests in facts["sent"].items()
        }
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return {}
