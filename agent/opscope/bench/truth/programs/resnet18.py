"""ResNet-18 in its published shape, with random weights and torch.nn only, so that no bench needs
torchvision."""

from typing import Any

import torch
from torch import nn


class _Block(nn.Module):  # type: ignore[misc, unused-ignore]
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut: Any = nn.Identity()
        if stride != 1:
            convolution = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
            self.shortcut = nn.Sequential(convolution, nn.BatchNorm2d(outputs))

    def forward(self, x: Any) -> Any:
        return (self.body(x) + self.shortcut(x)).relu_()


def resnet18(classes: int) -> nn.Sequential:
    """Takes images [batch, 3, height, width], gives [batch, classes]. Seeds PyTorch's random
    numbers."""
    torch.manual_seed(0)
    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),
    ]
    for inputs, outputs in ((64, 64), (64, 128), (128, 256), (256, 512)):
        for first, stride in ((inputs, 1 if inputs == outputs else 2), (outputs, 1)):
            layers.append(_Block(first, outputs, stride))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes))
