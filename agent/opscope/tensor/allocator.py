"""Memory statistics of tensor allocators, and the allocator of new tensors.

Names are those of the equivalent functions in `torch.cuda`. Counts cover all threads of the
process, in bytes as tensors requested them, without an allocator's own overhead.
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
    """The counts of an allocator (None: the one for new tensors).

    `allocated_bytes.all.current` is live memory, `.peak` its maximum; `.allocated` and `.freed` are
    sums since the start of the process; `allocation.all.allocated` counts allocations. Raises
    ValueError for an unknown allocator.
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
    """The maximum of bytes that tensors held, since the process began or the peak was reset."""
    return memory_stats(allocator)["allocated_bytes.all.peak"]


def reset_peak_memory_stats(allocator: str | None = None) -> None:
    """Restart the peak at the current live memory."""
    _tensor.reset_peak(get_allocator() if allocator is None else allocator)
