"""What allocators of tensors have given out, and which one new tensors take.

Names are those of ``torch.cuda``'s functions of the same purpose. The counts are the process's, all
threads together: bytes as tensors asked for them, without what an allocator keeps beside.
"""

from __future__ import annotations

from opscope import _tensor
from opscope._tensor import get_allocator, set_allocator

__all__ = [
    "get_allocator",
    "max_memory_allocated",
    "memory_allocated",
    "memory_stats",
    "reset_peak_memory_stats",
    "set_allocator",
]


def memory_stats(allocator: str | None = None) -> dict[str, int]:
    """The counts of an allocator (None: the one that new tensors take).

    ``allocated_bytes.all.current`` is what is live, ``.peak`` the most that was,
    ``.allocated`` and ``.freed`` are sums since the process began; ``allocation.all.allocated``
    counts allocations. ValueError for an allocator that there is not.
    """
    name = get_allocator() if allocator is None else allocator
    allocated, live, peak, count = _tensor.read_allocator(name)
    return {
        "allocated_bytes.all.allocated": allocated,
        "allocated_bytes.all.current": live,
        "allocated_bytes.all.freed": allocated - live,
        "allocated_bytes.all.peak": peak,
        "allocation.all.allocated": count,
    }


def memory_allocated(allocator: str | None = None) -> int:
    """Bytes that tensors hold now."""
    return memory_stats(allocator)["allocated_bytes.all.current"]


def max_memory_allocated(allocator: str | None = None) -> int:
    """The most bytes that tensors held, since the process began or the peak was reset."""
    return memory_stats(allocator)["allocated_bytes.all.peak"]


def reset_peak_memory_stats(allocator: str | None = None) -> None:
    """Let the peak begin anew, at what is live now."""
    _tensor.reset_peak(get_allocator() if allocator is None else allocator)
