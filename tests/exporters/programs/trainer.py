"""An ordinary PyTorch training that runs for as many seconds as its argument: a transformer learns
the sum of digits."""

import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

WORDS, LENGTH, WIDTH, CLASSES = 10, 16, 32, 91


def main(seconds: float) -> None:
    end = time.monotonic() + seconds
    digits = torch.randint(WORDS, (4096, LENGTH))
    data = TensorDataset(digits, digits.sum(dim=1).clamp(max=CLASSES - 1))
    layer = nn.TransformerEncoderLayer(WIDTH, 4, 64, batch_first=True)
    body = nn.Sequential(nn.Embedding(WORDS, WIDTH), nn.TransformerEncoder(layer, 2))
    head = nn.Linear(WIDTH, CLASSES)
    model = nn.ModuleList((body, head))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)
    while True:
        for given, wanted in DataLoader(data, batch_size=64, shuffle=True):
            optimizer.zero_grad()
            scores = head(body(given).mean(dim=1))
            loss = nn.functional.cross_entropy(scores, wanted)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            (scores.argmax(dim=1) == wanted).float().mean().item()
            if time.monotonic() > end:
                return


if __name__ == "__main__":
    main(float(sys.argv[1]))
