"""Random sequences: `Generator`, and the state of the process's own."""

from __future__ import annotations

from collections.abc import Generator as Yields
from contextlib import contextmanager
from typing import Any

from opscope import _tensor
from opscope._tensor import Tensor


class Generator:
    """A random sequence of its own, for functions with `generator=`.

    Two generators with one seed give the same numbers, which are not PyTorch's. One thread uses a
    generator at a time.
    """

    device = "cpu"

    def __init__(self, device: Any = "cpu") -> None:
        from opscope.tensor.places import check

        check(device, "Generator")
        self._state = _tensor.random_begin(67280421310721)  # PyTorch's default seed
        self._seed = 67280421310721

    def manual_seed(self, seed: int) -> Generator:
        """Begins the sequence of that seed."""
        self._seed = seed
        self._state = _tensor.random_begin(seed)
        return self

    def seed(self) -> int:
        """Begins a sequence with a seed from the system, which is returned."""
        import os

        seed = int.from_bytes(os.urandom(7), "little")
        self.manual_seed(seed)
        return seed

    def initial_seed(self) -> int:
        """The seed with which the sequence began."""
        return self._seed

    def get_state(self) -> Tensor:
        """The state, as 8 numbers of uint8."""
        return _of_state(self._state)

    def set_state(self, new_state: Tensor) -> Generator:
        """The sequence goes on from that state."""
        self._state = _to_state(new_state)
        return self

    def draw_seed(self) -> int:
        """64 bits of the sequence, to seed another one with."""
        with drawing(self):
            return _tensor.draw_seed()


@contextmanager
def drawing(generator: Generator | None) -> Yields[None]:
    """Within the block, this thread's operators draw from the generator; None: from the process's
    sequence. Blocks do not nest."""
    if generator is None:
        yield
        return
    _tensor.random_use_own(generator._state)
    try:
        yield
    finally:
        generator._state = _tensor.random_end_own()


def _of_state(state: int) -> Tensor:
    return _tensor.tensor(list(state.to_bytes(8, "little")), dtype=_tensor.uint8)


def _to_state(state: Tensor) -> int:
    if state.dtype is not _tensor.uint8 or state.numel() != 8:
        raise RuntimeError("set_state(): a state is 8 numbers of uint8, as get_state() returns it")
    return int.from_bytes(bytes(state.tolist()), "little")


def get_rng_state() -> Tensor:
    """The state of the process's random sequence, as 8 numbers of uint8."""
    return _of_state(_tensor.random_state())


def set_rng_state(new_state: Tensor) -> None:
    """The process's random sequence goes on from a state that get_rng_state() returned."""
    _tensor.set_random_state(_to_state(new_state))


def seed() -> int:
    """Seeds the process's random sequence by the system; returns the seed."""
    drawn = Generator().seed()
    _tensor.manual_seed(drawn)
    return drawn
