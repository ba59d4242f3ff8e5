"""A program of the bundled core: training a small convolutional network."""

from typing import Any

from opscope import tensor as ot
from opscope.bench.truth.programs import LEARNING_RATE, Drive, in_turn
from opscope.tensor import nn, optim


def cnn() -> Drive:
    ot.set_num_threads(1)
    ot.manual_seed(0)
    model: Any = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, 10),
    )
    optimizer = optim.Adam(model.parameters(), LEARNING_RATE)
    images = ot.tensor([[[[0.5] * 8] * 8]] * 32)
    digits = ot.tensor([index % 10 for index in range(32)])

    def step() -> None:
        optimizer.zero_grad()
        loss: Any = ot.cross_entropy(model(images), digits)
        loss.backward()
        optimizer.step()

    return in_turn(step)
