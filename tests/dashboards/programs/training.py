"""An ordinary program that learns handwritten digits in three ways until its input ends: with
opscope.tensor, in plain NumPy, and in PyTorch if installed. Tests observe it; each way has its own
model_id."""

import select
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count

import numpy as np

import opscope
from opscope import demo_cnn
from opscope.tensor import optim

FEW = 512
"""Images of an epoch, so that the three take turns often."""


def core(data: demo_cnn.Digits) -> Iterator[float]:
    model = demo_cnn.network()
    optimizer = optim.Adam(model.parameters(), lr=demo_cnn.LEARNING_RATE)
    for epoch in count():
        yield from demo_cnn.train(model, optimizer, data, epoch)


def plain(data: demo_cnn.Digits) -> Iterator[float]:
    """Softmax regression, as in any NumPy tutorial."""
    x, wanted = data.images.reshape(-1, 64), np.eye(10, dtype="f4")[data.digits]
    weights = np.zeros((64, 10), "f4")
    while True:
        scores = np.exp(np.dot(x, weights))
        shares = np.divide(scores, np.sum(scores, axis=1, keepdims=True))
        weights -= 0.1 * np.dot(x.T, np.subtract(shares, wanted)) / len(x)
        yield float(-np.mean(np.log(shares[wanted > 0])))


def torch_model(data: demo_cnn.Digits) -> Iterator[float]:
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    torch.set_num_threads(1)
    model = demo_cnn.network(torch.nn)
    optimizer = torch.optim.Adam(model.parameters(), lr=demo_cnn.LEARNING_RATE)
    dataset = TensorDataset(torch.from_numpy(data.images), torch.from_numpy(data.digits))
    while True:
        for images, digits in DataLoader(dataset, batch_size=demo_cnn.BATCH, shuffle=True):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(images), digits)
            loss.backward()
            optimizer.step()
            with suppress(RuntimeError):
                torch.mm(images, images)  # fails, and is counted as such
            yield loss.item()


def main() -> None:
    opscope.log_api_usage_once("program.train")
    data = demo_cnn.load()
    data = data._replace(images=data.images[:FEW], digits=data.digits[:FEW])
    makers: dict[str, Callable[[demo_cnn.Digits], Iterator[float]]] = {
        "digits-core": core,
        "digits-numpy": plain,
    }
    with suppress(ImportError):
        import torch  # noqa: F401

        makers["digits-torch"] = torch_model
    steps = {name: make(data) for name, make in makers.items()}
    # It rests between rounds: the tests that run beside it need the processor, too.
    while not select.select([sys.stdin], [], [], 0.05)[0]:
        for name, step in steps.items():
            with opscope.debug_info(model_id=name):
                next(step)


if __name__ == "__main__":
    main()
