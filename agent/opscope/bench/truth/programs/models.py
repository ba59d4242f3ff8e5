"""PyTorch models with random weights, in the shapes of real ones, or smaller if a step would take
long; they use torch.nn only."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from opscope.bench.truth.programs import LEARNING_RATE, Drive, in_turn
from opscope.bench.truth.programs.resnet18 import resnet18 as make_resnet18

_VOCABULARY = 1000


def mlp() -> Drive:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 10))
    optimizer = torch.optim.Adam(model.parameters(), LEARNING_RATE)
    inputs, targets = torch.randn(16, 32), torch.randint(10, (16,))
    loss = nn.CrossEntropyLoss()
    return in_turn(_training(optimizer, lambda: loss(model(inputs), targets)), warm=20)


def _training(optimizer: Any, forward: Callable[[], Any]) -> Callable[[], None]:
    def step() -> None:
        optimizer.zero_grad()
        forward().backward()
        optimizer.step()

    return step


def _attention(width: int, heads: int) -> tuple[nn.ModuleDict, Callable[..., Any]]:
    layers = nn.ModuleDict(
        {name: nn.Linear(width, width) for name in ("query", "key", "value", "output")}
    )

    def split(x: Any) -> Any:
        return x.view(x.shape[0], x.shape[1], heads, width // heads).transpose(1, 2)

    def attend(x: Any, keys: Any = None, values: Any = None) -> Any:
        """The result for `x`, with earlier keys and values before its own; and all of these."""
        query, key, value = (split(layers[name](x)) for name in ("query", "key", "value"))
        if keys is not None:
            key, value = torch.cat((keys, key), 2), torch.cat((values, value), 2)
        scores = query @ key.transpose(-1, -2) / (width // heads) ** 0.5
        mixed = (scores.softmax(-1) @ value).transpose(1, 2).reshape(x.shape)
        return layers["output"](mixed), key, value

    return layers, attend


def bert() -> Drive:
    """Four layers of width 192, as in a small BERT: training with AdamW on 8 x 64 tokens."""
    torch.manual_seed(0)
    width, heads, depth = 192, 4, 4
    embed = nn.Embedding(_VOCABULARY, width)
    place = nn.Embedding(64, width)
    norm, head = nn.LayerNorm(width), nn.Linear(width, _VOCABULARY)
    dropout = nn.Dropout(0.1)
    modules = nn.ModuleList([embed, place, norm, head])
    blocks: list[Any] = []
    for _ in range(depth):
        layers, attend = _attention(width, heads)
        first, second = nn.LayerNorm(width), nn.LayerNorm(width)
        wide = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        modules.extend([layers, first, second, wide])
        blocks.append((attend, first, wide, second))
    tokens, places = torch.randint(_VOCABULARY, (8, 64)), torch.arange(64)

    def forward() -> Any:
        x = dropout(norm(embed(tokens) + place(places)))
        for attend, first, wide, second in blocks:
            x = first(x + dropout(attend(x)[0]))
            x = second(x + dropout(wide(x)))
        return functional.cross_entropy(head(x).flatten(0, 1), tokens.flatten())

    return in_turn(_training(torch.optim.AdamW(modules.parameters(), LEARNING_RATE), forward))


def gpt2() -> Drive:
    """Six layers of width 256, as in a small GPT-2: a step makes 32 tokens, one after another."""
    torch.manual_seed(0)
    width, heads, depth, length = 256, 4, 6, 32
    embed, place = nn.Embedding(_VOCABULARY, width), nn.Embedding(length, width)
    norm, head = nn.LayerNorm(width), nn.Linear(width, _VOCABULARY, bias=False)
    blocks: list[Any] = []
    for _ in range(depth):
        _, attend = _attention(width, heads)
        wide = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        blocks.append((nn.LayerNorm(width), attend, nn.LayerNorm(width), wide))
    places = torch.arange(length).unsqueeze(1)
    start = torch.zeros(1, 1, dtype=torch.long)

    def step() -> None:
        with torch.inference_mode():
            generate()

    def generate() -> None:
        token = start
        kept: list[Any] = [(None, None)] * depth
        for position in places:
            x = embed(token) + place(position)
            for index, (before, attend, between, wide) in enumerate(blocks):
                mixed, *kept[index] = attend(before(x), *kept[index])
                x = x + mixed
                x = x + wide(between(x))
            token = head(norm(x))[:, -1].argmax(-1, keepdim=True)

    return in_turn(step)


def convolutions() -> Drive:
    """Two convolutions of 64 channels, trained on 4 images of 56 x 56: each outlasts a window."""
    torch.manual_seed(0)
    first, second = (nn.Conv2d(64, 64, 3, padding=1) for _ in range(2))
    net = nn.Sequential(first, nn.ReLU(), second, nn.BatchNorm2d(64), nn.ReLU())
    optimizer = torch.optim.SGD(net.parameters(), LEARNING_RATE)
    images = torch.randn(4, 64, 56, 56)
    return in_turn(_training(optimizer, lambda: net(images).square().mean()))


def resnet18() -> Drive:
    """In its published shape, training with SGD on 4 images of 64 x 64."""
    net = make_resnet18(classes=10)
    optimizer = torch.optim.SGD(net.parameters(), LEARNING_RATE, momentum=0.9, weight_decay=1e-4)
    images, targets = torch.randn(4, 3, 64, 64), torch.randint(10, (4,))
    loss = nn.CrossEntropyLoss()
    return in_turn(_training(optimizer, lambda: loss(net(images), targets)))
