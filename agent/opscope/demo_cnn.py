"""`python -m opscope.demo_cnn`: train a small CNN on handwritten digits, and show its profile.

The network, its gradients and its optimizer use opscope.tensor; the table at the end is that of
`opscope top` for a process. Needs scikit-learn, for the digits; takes a few seconds.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from opscope import tensor as ot
from opscope.record import recorder
from opscope.tensor import nn, optim

EPOCHS = 12
BATCH = 64
LEARNING_RATE = 1e-2
_ROWS = 14
_SERIES_LIMIT = 2000


class Digits(NamedTuple):
    """Images are float32 (count, 1, 8, 8) within [0, 1], digits int64 (count)."""

    images: Any
    digits: Any
    test_images: Any
    test_digits: Any


def load() -> Digits:
    """scikit-learn's 1797 digits, a quarter of them for the test."""
    from sklearn.datasets import load_digits

    images, digits = load_digits(return_X_y=True)
    images = (images / 16).astype(np.float32).reshape(-1, 1, 8, 8)
    order = np.random.default_rng(0).permutation(len(digits))
    test, train = np.split(order, [len(digits) // 4])
    return Digits(images[train], digits[train], images[test], digits[test])


def network(kinds: Any = nn) -> Any:
    """The network, with opscope's modules or the equally named ones of `torch.nn`."""
    return kinds.Sequential(
        kinds.Conv2d(1, 16, 3, padding=1),
        kinds.ReLU(),
        kinds.Conv2d(16, 32, 3, padding=1),
        kinds.ReLU(),
        kinds.MaxPool2d(2),
        kinds.Flatten(),
        kinds.Linear(32 * 4 * 4, 10),
    )


def batches(count: int, epoch: int) -> Iterator[Any]:
    """The indices of each batch's images: a permutation of all, determined by the epoch."""
    order = np.random.default_rng(epoch).permutation(count)
    for start in range(0, count, BATCH):
        yield order[start : start + BATCH]


def train(model: Any, optimizer: Any, data: Digits, epoch: int) -> Iterator[float]:
    """Trains for one epoch; yields the loss of each step."""
    for places in batches(len(data.digits), epoch):
        optimizer.zero_grad()
        images, digits = ot.tensor(data.images[places]), ot.tensor(data.digits[places])
        loss: Any = ot.cross_entropy(model(images), digits)
        loss.backward()
        optimizer.step()
        yield loss.item()


def accuracy(model: Any, data: Digits) -> float:
    """The share of test images that the model classifies correctly."""
    with ot.no_grad():
        named: Any = model(ot.tensor(data.test_images)).argmax(1).numpy()
    return float((named == data.test_digits).mean())


def main() -> None:
    ot.manual_seed(0)
    data = load()
    model = network()
    optimizer = optim.Adam(model.parameters(), lr=LEARNING_RATE)
    with tempfile.TemporaryDirectory(prefix="opscope-demo-") as directory:
        recorder.start(directory)
        started = perf_counter()
        steps = 0
        for epoch in range(EPOCHS):
            losses = list(train(model, optimizer, data, epoch))
            steps += len(losses)
            print(
                f"epoch {epoch + 1}: loss {np.mean(losses):.4f}, "
                f"test accuracy {accuracy(model, data):.3f}",
                flush=True,
            )
        print(f"{steps} steps in {perf_counter() - started:.1f} s\n", flush=True)
        _show(directory)
        recorder.stop(discard=True)


def _show(directory: str) -> None:
    """Prints the busiest operators of this process, from its own segment."""
    from rich.console import Console

    from opscope.host.host import Host
    from opscope.reports import view
    from opscope.reports.table import screen

    snapshot = Host((directory,), consume=False, max_series=_SERIES_LIMIT).collect()
    shown = view.view(snapshot, None, view.by_operator, "self")
    console = Console(width=None if "COLUMNS" in os.environ else 100)
    console.print(
        screen(snapshot, shown, sort="self", limit=_ROWS, by="operator", width=console.width)
    )


if __name__ == "__main__":
    main()
