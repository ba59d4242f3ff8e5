"""Servers in threads of the test's process, and the models that they serve."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tritonclient import grpc as triton

from opscope import tensor as ot
from opscope.serving.batcher import Rule
from opscope.serving.model_config import ModelConfig, TensorSpec, describe
from opscope.serving.repository import Source
from opscope.serving.server import ModelServer, Options, run
from opscope.tensor import jit


def save_double(path: Path, factor: float = 2.0, rule: Rule | None = None) -> Path:
    """A model of FP32 (n, 4) to FP32 (n, 4)."""

    def scaled(x: Any) -> Any:
        return x * factor

    model = jit.trace(scaled, ot.ones(2, 4))
    config = describe(
        model,
        [ot.ones(2, 4)],
        input_names=["x"],
        output_names=["y"],
        rule=rule or Rule(max_batch_size=16),
    )
    jit.save(model, path, extra_files={"serving.json": config.to_json()})
    return path


def save_table(path: Path, rule: Rule | None = None) -> Path:
    """A model of INT64 (n, 2) to FP32 (n, 2, 3), which raises for numbers that are not 0 to 9."""
    table = ot.tensor([[float(row), row + 0.25, row + 0.5] for row in range(10)])

    def rows(ids: Any) -> Any:
        return ot.embedding(table, ids)

    example = ot.tensor([[1, 2], [3, 4]])
    model = jit.trace(rows, example)
    config = describe(
        model,
        [example],
        input_names=["ids"],
        output_names=["rows"],
        rule=rule or Rule(max_batch_size=16),
    )
    jit.save(model, path, extra_files={"serving.json": config.to_json()})
    return path


class Running:
    """A server that a test talks to."""

    def __init__(self, server: ModelServer, loop: asyncio.AbstractEventLoop) -> None:
        self.server = server
        self._loop = loop
        assert server.grpc is not None
        assert server.http is not None
        self.grpc = server.grpc.address
        self.http = server.http.address

    def call(self, coroutine: Any) -> Any:
        """The result of a coroutine, on the server's loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(60)


@contextmanager
def running(*sources: Source, **options: Any) -> Iterator[Running]:
    """A server of these models on free ports."""
    ready = threading.Event()
    found: dict[str, Any] = {}

    async def main() -> None:
        stop = asyncio.Event()
        try:
            server = ModelServer(
                Options(list(sources), grpc="127.0.0.1:0", http="127.0.0.1:0", **options)
            )
            await server.start()
            found.update(server=server, loop=asyncio.get_running_loop(), stop=stop)
        except Exception as error:
            found["error"] = error
            return
        finally:
            ready.set()
        await stop.wait()
        await server.stop()

    thread = threading.Thread(target=run, args=(main(),), daemon=True)
    thread.start()
    assert ready.wait(60)
    if "error" in found:
        raise found["error"]
    try:
        yield Running(found["server"], found["loop"])
    finally:
        found["loop"].call_soon_threadsafe(found["stop"].set)
        thread.join(60)
        assert not thread.is_alive()


def triton_client(address: str, **options: Any) -> Any:
    """Triton's gRPC client, whose types leave out what it answers."""
    return triton.InferenceServerClient(address, **options)


def source(name: str, path: Path, version: str = "1") -> Source:
    return Source(name, version, str(path))


def config_of(rule: Rule) -> ModelConfig:
    """FP32 (n, 4) to FP32 (n, 4)."""
    return ModelConfig(
        (TensorSpec("x", "FP32", (-1, 4)),), (TensorSpec("y", "FP32", (-1, 4)),), rule
    )
