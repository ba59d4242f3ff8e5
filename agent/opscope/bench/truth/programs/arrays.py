"""Programs of NumPy alone: small operators, threads, products on two threads, and all durations."""

import math
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from opscope.bench.truth.programs import Done, Drive, in_turn, with_threads

_LONGEST = 3_000_000_000
"""Number of elements that one operator adds up, in about two seconds."""


_LINE_BYTES = 64
"""Of a cache, and of the widest vector instructions."""


def _aligned(*shape: int) -> "np.ndarray[Any, np.dtype[np.float64]]":
    """Ones that begin at a cache line. Elsewhere an operator takes up to two fifths longer, and
    where arrays begin differs between a program's processes."""
    count = math.prod(shape)
    room = np.ones(count + _LINE_BYTES // 8)
    gap = -room.__array_interface__["data"][0] % _LINE_BYTES
    return room[gap // 8 : gap // 8 + count].reshape(shape)


def _small() -> Callable[[], None]:
    ten, many, square = np.ones(10), _aligned(2000), _aligned(64, 64)
    result, product = _aligned(2000), _aligned(64, 64)

    def step() -> None:
        for _ in range(100):
            np.add(ten, ten)
            np.multiply(many, many, out=result)
            np.sqrt(many, out=result)
        for _ in range(5):
            np.matmul(square, square, out=product)

    return step


def small() -> Drive:
    return in_turn(_small())


def _mixed() -> Callable[[], None]:
    ten, many, square = np.ones(10), np.ones(20_000), np.ones((100, 100))

    def step() -> None:
        for _ in range(50):
            np.add(ten, ten)
        for _ in range(5):
            np.sin(many)
        np.matmul(square, square)

    return step


def _threads(count: int) -> Drive:
    """`count` threads that live while the program makes steps, each with its own arrays."""
    drives = [in_turn(_mixed()) for _ in range(count)]

    def drive(seconds: float) -> Done:
        done: list[Done] = []
        threads = [
            threading.Thread(target=lambda one=one: done.append(one(seconds))) for one in drives
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        steps, active_s, stopped_s2 = map(sum, zip(*done, strict=True))
        return Done(int(steps), active_s, stopped_s2)

    return drive


one_thread, two_threads, eight_threads = (partial(_threads, count) for count in (1, 2, 8))


def short_threads() -> Drive:
    """A thread in each step, which lives for half a millisecond. Its first range is between windows
    as often as its work is, because `np.ones` calls a built-in function."""
    fifty = np.ones(50)

    def work() -> None:
        own = np.ones(50)
        for _ in range(500):
            np.add(own, fifty, out=own)

    def step() -> None:
        thread = threading.Thread(target=work)
        thread.start()
        for _ in range(100):
            np.sqrt(fifty)
        thread.join()

    return with_threads(step)


def blas() -> Drive:
    """Products on OPENBLAS_NUM_THREADS threads."""
    square = np.ones((400, 400))

    def step() -> None:
        np.matmul(square, square)
        np.add(square, square)

    return in_turn(step)


def sizes() -> Drive:
    """Operators from 200 ns to 2 s, with about a quarter of the time for each of four durations."""
    one, ten, many = np.ones(1), np.ones(10), np.ones(1_000_000)
    longest = np.broadcast_to(one, (_LONGEST,))

    def step() -> None:
        for _ in range(200_000):
            np.add(ten, ten)
        for _ in range(400):
            np.sin(many[:100_000])
        for _ in range(50):
            np.exp(many)
        np.add.reduce(longest)

    return in_turn(step, warm=1)
