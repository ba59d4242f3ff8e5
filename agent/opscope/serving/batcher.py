"""The queue of a model, and Triton's rule by which requests leave it in batches.

Facts: Triton's docs/user_guide/batcher.md. Requests leave in the order of their arrival. When an
instance of the model is free, the first requests that make the largest preferred size are sent,
else as many as fit, up to the greatest size. While neither a full nor a preferred batch can be
made, they wait for more, but none longer than the greatest delay; then those that fit are sent.
Requests whose shapes differ are never in one batch: the first that differs ends the batch before
it.

Pure: each call gets the time, and nothing here waits.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Rule:
    """How a model's requests are batched. Times are in ns, sizes in rows."""

    max_batch_size: int = 0
    """0: the model's tensors have no dimension for batches, and each request runs alone."""
    preferred_batch_sizes: tuple[int, ...] = ()
    max_queue_delay_ns: int = 0
    max_queue_size: int = 1000
    """Requests that wait at most; further ones are refused."""
    max_queue_bytes: int = 256 << 20
    default_timeout_ns: int = 0
    """How long a request waits at most if it says nothing else; 0: without limit."""


@dataclass(eq=False, slots=True)
class Queued(Generic[T]):
    """A request in the queue."""

    payload: T
    rows: int
    shape: Hashable
    """What has to be equal within a batch."""
    bytes: int
    arrived_ns: int
    deadline_ns: int | None = None


@dataclass
class Taken(Generic[T]):
    """What left the queue."""

    batch: list[Queued[T]] = field(default_factory=list)
    expired: list[Queued[T]] = field(default_factory=list)
    """Their deadlines have passed."""
    wait_until_ns: int | None = None
    """When to ask again if nothing else happens; None: not before the next request."""


class QueueFullError(Exception):
    """The queue takes no further request."""


class Batcher(Generic[T]):
    """The queue of one model. Not for several threads."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        # By identity and in order of arrival, so that a request in the middle can leave.
        self._waiting: dict[int, Queued[T]] = {}
        self._deadlines: list[tuple[int, int, Queued[T]]] = []
        self._arrivals = 0
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def bytes(self) -> int:
        """Of all requests that wait."""
        return self._bytes

    def offer(self, one: Queued[T]) -> None:
        """Puts a request at the end of the queue. Raises QueueFullError."""
        if len(self._waiting) >= self.rule.max_queue_size:
            raise QueueFullError(f"{len(self._waiting)} requests wait, as many as the queue takes")
        if self._waiting and self._bytes + one.bytes > self.rule.max_queue_bytes:
            raise QueueFullError(
                f"requests of {self._bytes} bytes wait, as many as the queue takes"
            )
        self._waiting[id(one)] = one
        self._bytes += one.bytes
        if one.deadline_ns is None and self.rule.default_timeout_ns:
            one.deadline_ns = one.arrived_ns + self.rule.default_timeout_ns
        if one.deadline_ns is not None:
            self._arrivals += 1
            heappush(self._deadlines, (one.deadline_ns, self._arrivals, one))

    def remove(self, one: Queued[T]) -> bool:
        """Takes a cancelled request out; False if it has left before."""
        if self._waiting.pop(id(one), None) is None:
            return False
        self._bytes -= one.bytes
        if len(self._deadlines) > 2 * len(self._waiting) + 16:
            # Those of requests that left in time.
            self._deadlines = [each for each in self._deadlines if id(each[2]) in self._waiting]
            self._deadlines.sort()
        return True

    def take(self, now_ns: int, *, is_free: bool = True) -> Taken[T]:
        """The next batch, if an instance of the model is free and the rule lets one go now."""
        taken: Taken[T] = Taken(expired=self._expire(now_ns))
        if is_free and self._waiting:
            delay_ns = self.rule.max_queue_delay_ns
            oldest_ns = next(iter(self._waiting.values())).arrived_ns
            is_late = delay_ns > 0 and now_ns >= oldest_ns + delay_ns
            batch, preferred, is_complete = self._first_batch()
            if preferred and not is_late:
                taken.batch = batch[:preferred]
            elif is_late or is_complete or delay_ns == 0:
                taken.batch = batch
            else:
                taken.wait_until_ns = oldest_ns + delay_ns
            for one in taken.batch:
                self.remove(one)
        next_deadline = self._next_deadline()
        if next_deadline is not None:
            taken.wait_until_ns = min(next_deadline, taken.wait_until_ns or next_deadline)
        return taken

    def clear(self) -> list[Queued[T]]:
        """Takes out all that wait."""
        waiting = list(self._waiting.values())
        self._waiting.clear()
        self._deadlines.clear()
        self._bytes = 0
        return waiting

    def _first_batch(self) -> tuple[list[Queued[T]], int, bool]:
        """The first requests that fit into one batch, how many of them make the largest preferred
        size (0: none), and whether no later request could join them."""
        greatest = self.rule.max_batch_size
        batch: list[Queued[T]] = []
        rows = preferred = 0
        for one in self._waiting.values():
            if batch and (one.shape != batch[0].shape or rows + one.rows > greatest):
                return batch, preferred, True
            batch.append(one)
            rows += one.rows
            if rows in self.rule.preferred_batch_sizes:
                preferred = len(batch)
        return batch, preferred, rows >= greatest

    def _expire(self, now_ns: int) -> list[Queued[T]]:
        expired = []
        while self._deadlines and self._deadlines[0][0] <= now_ns:
            _, _, one = heappop(self._deadlines)
            if self.remove(one):
                expired.append(one)
        return expired

    def _next_deadline(self) -> int | None:
        while self._deadlines and id(self._deadlines[0][2]) not in self._waiting:
            heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None
