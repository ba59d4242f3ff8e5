"""The CNN of the demonstration learns, step by step as PyTorch's does."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch

from opscope import demo_cnn
from opscope import tensor as ot
from opscope.tensor import optim


def their_losses(model: Any, optimizer: Any, data: demo_cnn.Digits, epoch: int) -> list[float]:
    losses = []
    for places in demo_cnn.batches(len(data.digits), epoch):
        optimizer.zero_grad()
        images, digits = map(torch.from_numpy, (data.images[places], data.digits[places]))
        loss = torch.nn.functional.cross_entropy(model(images), digits)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_losses_are_pytorchs_at_every_step_and_the_test_accuracy_is_97_percent() -> None:
    data = demo_cnn.load()
    ot.manual_seed(0)
    model, theirs = demo_cnn.network(), demo_cnn.network(torch.nn)
    theirs.load_state_dict(
        {name: torch.tensor(value.tolist()) for name, value in model.state_dict().items()}
    )
    optimizer = optim.Adam(model.parameters(), lr=demo_cnn.LEARNING_RATE)
    peer = torch.optim.Adam(theirs.parameters(), lr=demo_cnn.LEARNING_RATE)
    for epoch in range(demo_cnn.EPOCHS):
        own = list(demo_cnn.train(model, optimizer, data, epoch))
        assert own == pytest.approx(their_losses(theirs, peer, data, epoch), abs=1e-4)
    assert demo_cnn.accuracy(model, data) >= 0.97


def test_the_split_keeps_a_quarter_for_the_test_and_loses_nothing() -> None:
    data = demo_cnn.load()
    assert data.images.shape == (1348, 1, 8, 8)
    assert data.test_images.shape == (449, 1, 8, 8)
    assert len(data.digits) == 1348
    assert len(data.test_digits) == 449
    places = np.concatenate(list(demo_cnn.batches(1348, 3)))
    assert sorted(places) == list(range(1348))


def test_the_demonstration_shows_accuracy_and_where_the_time_went() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "opscope.demo_cnn"],
        # With lines of full length: pytest-xdist sets COLUMNS.
        env={
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("OPSCOPE_", "COLUMNS"))
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    found = re.findall(r"test accuracy (\d\.\d+)", done.stdout)
    assert len(found) == demo_cnn.EPOCHS
    assert float(found[-1]) >= 0.97
    for name in ("core::conv2d ", "core::max_pool2d ", "core::Adam.step"):
        assert name in done.stdout
