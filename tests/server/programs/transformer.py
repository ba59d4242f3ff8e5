"""A small transformer that learns to repeat a sequence, in PyTorch, for ever: for pictures."""

import itertools

import torch
from torch import nn

WORDS, WIDTH, LENGTH = 64, 96, 48


def model() -> nn.Module:
    layer = nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, batch_first=True)
    return nn.Sequential(
        nn.Embedding(WORDS, WIDTH),
        nn.TransformerEncoder(layer, 2, enable_nested_tensor=False),
        nn.Linear(WIDTH, WORDS),
    )


def main() -> None:
    torch.set_num_threads(1)
    learns = model()
    optimizer = torch.optim.AdamW(learns.parameters(), lr=1e-3)
    for _ in itertools.count():
        x = torch.randint(WORDS, (16, LENGTH))
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(learns(x).flatten(0, 1), x.flatten())
        loss.backward()
        optimizer.step()


main()
