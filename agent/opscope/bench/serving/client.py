"""Clients that send the same request again and again, and programs that answer them."""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, perf_counter, sleep
from typing import Any

import numpy as np

_START_S = 60.0
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def message(model: str, images: int = 1) -> bytes:
    """A request with random images of 8 x 8."""
    from opscope.serving.protocol import REQUESTS

    content = np.random.default_rng(0).random((images, 1, 8, 8), dtype=np.float32).tobytes()
    made = REQUESTS["ModelInfer"](model_name=model, raw_input_contents=[content])
    made.inputs.add(name="images", datatype="FP32", shape=[images, 1, 8, 8])
    return bytes(made.SerializeToString())


class GrpcClient:
    """One channel."""

    def __init__(self, address: str) -> None:
        self._address = address

    def throughput(self, request: bytes, count: int, at_once: int) -> float:
        """Requests a second, with so many in flight."""
        return asyncio.run(self._throughput(request, count, at_once))

    def latencies(self, request: bytes, count: int, rate: float) -> list[float]:
        """Seconds from when each request should be sent to its answer, at so many a second."""
        return asyncio.run(self._latencies(request, count, rate))

    def _call(self, channel: Any) -> Any:
        return channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")

    async def _throughput(self, request: bytes, count: int, at_once: int) -> float:
        import grpc

        async with grpc.aio.insecure_channel(self._address) as channel:
            call = self._call(channel)
            await call(request)
            left = iter(range(count))

            async def ask() -> None:
                for _ in left:
                    await call(request)

            started = perf_counter()
            await asyncio.gather(*(ask() for _ in range(at_once)))
            return count / (perf_counter() - started)

    async def _latencies(self, request: bytes, count: int, rate: float) -> list[float]:
        import grpc

        async with grpc.aio.insecure_channel(self._address) as channel:
            call = self._call(channel)
            await call(request)
            found = []

            async def ask(due: float) -> None:
                await call(request)
                found.append(perf_counter() - due)

            started = perf_counter()
            tasks = []
            for number in range(count):
                due = started + number / rate
                await asyncio.sleep(max(0.0, due - perf_counter()))
                tasks.append(asyncio.ensure_future(ask(due)))
            await asyncio.gather(*tasks)
            return found


def naive_throughput(port: int, count: int) -> float:
    """Requests a second of the naive server, one after another on one connection each, as its
    HTTP/1.0 allows."""
    image = np.random.default_rng(0).random((1, 1, 8, 8), dtype=np.float32).tobytes()
    body = json.dumps({"image": base64.b64encode(image).decode()})
    headers = {"Content-Type": "application/json"}
    started = perf_counter()
    for _ in range(count):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("POST", "/predict", body, headers)
        json.loads(connection.getresponse().read())
        connection.close()
    return count / (perf_counter() - started)


class Program:
    """A server's process."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self._pid = process.pid
        self.address = address

    def cpu_s(self) -> float:
        """CPU time so far, of all its threads."""
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) * _TICK_S

    def resident_bytes(self) -> int:
        pages = int(Path(f"/proc/{self._pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def serving(
    models: Mapping[str, Path], folder: Path, environment: Mapping[str, str] | None = None
) -> Iterator[Program]:
    """`opscope serve-model`; with an `environment`, under `opscope run`."""
    command = ["opscope", "run", "--"] if environment is not None else []
    command += ["opscope", "serve-model", "--grpc", "127.0.0.1:0", "--http", "off"]
    command += [f"{name}={path}" for name, path in models.items()]
    path = f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}"
    env = {**os.environ, "PATH": path, **(environment or {})}
    with _running(command, env, folder) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        if not line.startswith("serving gRPC "):
            raise RuntimeError(f"opscope serve-model did not start: {line}")
        yield Program(process, line.split()[2].rstrip(","))


@contextmanager
def naive(archive: Path, folder: Path) -> Iterator[int]:
    """The naive server; its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "opscope.bench.serving.naive", str(archive), str(port)]
    with _running(command, dict(os.environ), folder):
        deadline = monotonic() + _START_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                if monotonic() > deadline:
                    raise
                sleep(0.05)
        yield port


@contextmanager
def _running(
    command: list[str], env: dict[str, str], folder: Path
) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        command, env=env, cwd=folder, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(_START_S)
        assert process.stderr is not None
        process.stderr.close()
