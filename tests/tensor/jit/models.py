"""Models that several tests use."""

from __future__ import annotations

from opscope import tensor as ops
from opscope.tensor import jit, nn


def digits_net() -> nn.Sequential:
    """A small convolutional net for images (batch, 1, 8, 8), in the mode of inference."""
    net = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 10),
    )
    return net.eval()


def digits_model() -> jit.CompiledModel:
    """The same, traced."""
    return jit.trace(digits_net(), ops.randn(2, 1, 8, 8), name="digits")
