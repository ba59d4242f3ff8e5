"""`python -m opscope.demo_serving`: train the digits CNN, serve it, and send it 2,000 images.

The client is grpcio's with the messages of the protocol. Shows throughput, batch sizes, and the
operators by model, version and batch size. Needs `opscope[serving]` and scikit-learn.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from opscope import demo_cnn
from opscope import tensor as ot
from opscope.record import recorder
from opscope.tensor import jit, optim

IMAGES = 2000
_AT_ONCE = 64
_EPOCHS = 3
_ROWS = 12
_SERIES = 2000


def train(path: Path) -> demo_cnn.Digits:
    """Trains the network and saves it with its description."""
    from opscope.serving.batcher import Rule
    from opscope.serving.model_config import describe

    ot.manual_seed(0)
    data = demo_cnn.load()
    network = demo_cnn.network()
    optimizer = optim.Adam(network.parameters(), lr=demo_cnn.LEARNING_RATE)
    for epoch in range(_EPOCHS):
        for _ in demo_cnn.train(network, optimizer, data, epoch):
            pass
    print(f"trained: test accuracy {demo_cnn.accuracy(network, data):.3f}", flush=True)
    example = ot.tensor(data.images[:2])
    model = jit.freeze(jit.trace(network.eval(), example))
    config = describe(
        model,
        [example],
        input_names=["images"],
        output_names=["scores"],
        rule=Rule(max_batch_size=32, max_queue_delay_ns=2_000_000),
    )
    jit.save(model, path, extra_files={"serving.json": config.to_json()})
    return data


async def classify(address: str, images: Any) -> list[int]:
    """The digit of each image: one request each, 64 at a time."""
    import grpc

    from opscope.serving.protocol import REPLIES, REQUESTS, SERVICE

    gate = asyncio.Semaphore(_AT_ONCE)
    async with grpc.aio.insecure_channel(address) as channel:
        infer = channel.unary_unary(
            f"/{SERVICE}/ModelInfer",
            request_serializer=REQUESTS["ModelInfer"].SerializeToString,
            response_deserializer=REPLIES["ModelInfer"].FromString,
        )

        async def one(image: Any) -> int:
            request = REQUESTS["ModelInfer"](
                model_name="digits", raw_input_contents=[image.tobytes()]
            )
            request.inputs.add(name="images", datatype="FP32", shape=[1, 1, 8, 8])
            async with gate:
                reply = await infer(request)
            return int(np.frombuffer(reply.raw_output_contents[0], np.float32).argmax())

        return await asyncio.gather(*map(one, images))


async def serve_and_ask(path: Path, data: demo_cnn.Digits) -> None:
    from opscope.host.host import Host
    from opscope.serving.repository import Source
    from opscope.serving.server import ModelServer, Options

    server = ModelServer(
        Options([Source("digits", "1", str(path))], grpc="127.0.0.1:0", http="127.0.0.1:0")
    )
    await server.start()
    print("serving " + ", ".join(server.addresses()), flush=True)
    assert server.grpc is not None
    places = np.resize(np.arange(len(data.test_images)), IMAGES)
    directory = str(path.parent)
    recorder.start(directory, label_keys=("model_version", "batch_size"))
    started = perf_counter()
    found = await classify(server.grpc.address, data.test_images[places])
    lasted_s = perf_counter() - started
    seen = Host((directory,), consume=False, max_series=_SERIES).collect()
    recorder.stop(discard=True)
    observer = server.repository.find("digits").observer
    await server.stop()
    right = float((np.array(found) == data.test_digits[places]).mean())
    batches, rows = observer.batches.read(), observer.rows.read()
    print(
        f"{IMAGES} images in {lasted_s:.2f} s: {IMAGES / lasted_s:,.0f} a second, {right:.1%} right"
    )
    print(f"{batches} batches, {rows / batches:.1f} images each on average\n")
    _show(seen)


def _show(seen: Any) -> None:
    """The busiest operators, of the one model that is served."""
    print(f"{'model':<8}{'version':<9}{'batch':<7}{'operator':<28}{'calls':>7}{'mean us':>10}")
    busiest = sorted(range(len(seen.keys)), key=lambda row: -seen.total_s[row])
    in_batches = [row for row in busiest if "batch_size" in dict(seen.keys[row].labels)]
    for row in in_batches[:_ROWS]:
        key, calls = seen.keys[row], seen.calls[row]
        labels = dict(key.labels)
        version, size = labels["model_version"], labels["batch_size"]
        mean_us = 1e6 * seen.total_s[row] / calls
        print(f"digits  {version:<9}{size:<7}{key.op:<28}{calls:>7.0f}{mean_us:>10.1f}")


def main() -> None:
    from opscope.serving.server import run

    with tempfile.TemporaryDirectory(prefix="opscope-demo-") as folder:
        path = Path(folder) / "digits.pt"
        data = train(path)
        run(serve_and_ask(path, data))


if __name__ == "__main__":
    main()
