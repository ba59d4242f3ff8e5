"""Many operators do not increase memory use."""

from __future__ import annotations

import gc
import resource
from collections.abc import Callable

import numpy as np
import pytest

from opscope import tensor as ot


def resident_pages() -> int:
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1])


def small_steps() -> None:
    x = ot.tensor([1.0, 2.0], requires_grad=True)
    y = ((x * x + 1) / 3 - x).sum()
    y.backward()


def failing_calls() -> None:
    for wrong in (
        lambda: ot.tensor([1.0, 2.0]) + ot.tensor([1.0, 2.0, 3.0]),
        lambda: ot.operators["core::add"](),
    ):
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            wrong()


def exchanges() -> None:
    tensor = ot.from_numpy(np.zeros(1000))
    np.from_dlpack(tensor)
    tensor.__dlpack__()
    memoryview(tensor)
    ot.tensor([[1.0] * 100] * 10).tolist()


def dropped_graphs() -> None:
    x = ot.tensor([1.0], requires_grad=True)
    y = x.exp()
    y.grad_fn  # noqa: B018 - makes a Node and drops it


@pytest.mark.parametrize("use", [small_steps, failing_calls, exchanges, dropped_graphs])
def test_repeating_leaves_memory_where_it_was(use: Callable[[], None]) -> None:
    for _ in range(500):
        use()
    gc.collect()
    before = resident_pages()
    for _ in range(10_000 if use is not failing_calls else 1000):
        use()
    gc.collect()
    assert (resident_pages() - before) * resource.getpagesize() < 1 << 20
