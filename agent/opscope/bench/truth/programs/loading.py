"""Training that waits for its data, loaded in the same process or by two worker processes."""

from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader

from opscope.bench.truth.programs import LEARNING_RATE, Drive, in_turn


class _Rows:
    """A data set in which each row takes twenty operators."""

    def __len__(self) -> int:
        return 1 << 30

    def __getitem__(self, index: int) -> tuple[Any, int]:
        row = torch.randn(64)
        for _ in range(20):
            row = row.sin()
        return row, index % 10


def _training(workers: int) -> Drive:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    optimizer = torch.optim.AdamW(model.parameters(), LEARNING_RATE)
    loss = nn.CrossEntropyLoss()
    rows: Any = _Rows()
    batches = iter(DataLoader(rows, batch_size=16, num_workers=workers))

    def step() -> None:
        inputs, targets = next(batches)
        optimizer.zero_grad()
        loss(model(inputs), targets).backward()
        optimizer.step()

    return in_turn(step)


def in_process() -> Drive:
    return _training(0)


def two_workers() -> Drive:
    """Their operators run in parallel to the steps, not within them."""
    return _training(2)
