"""The servers that are measured, in processes of their own, and what is sent to them."""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

import numpy as np

from opscope.bench.serving.load import Request, grpc_request

_START_S = 60.0


def _images(count: int) -> bytes:
    """Random images of 8 x 8."""
    return np.random.default_rng(0).random((count, 1, 8, 8), dtype=np.float32).tobytes()


class Program:
    """The process of `opscope serve-model`."""

    def __init__(self, process: subprocess.Popen[str], grpc: str, http: str) -> None:
        self._pid = process.pid
        self._grpc = grpc
        self._http = http

    def http(self, model: str, images: int = 1) -> Request:
        """A request in the binary extension."""
        content = _images(images)
        inputs = {
            "name": "images",
            "datatype": "FP32",
            "shape": [images, 1, 8, 8],
            "parameters": {"binary_data_size": len(content)},
        }
        head = json.dumps({"inputs": [inputs], "parameters": {"binary_data_output": True}}).encode()
        headers = {"inference-header-content-length": str(len(head))}
        return Request(f"http://{self._http}/v2/models/{model}/infer", headers, head + content)

    def grpc(self, model: str, images: int = 1) -> Request:
        """A request with raw contents."""
        from opscope.serving.protocol import REQUESTS

        made = REQUESTS["ModelInfer"](model_name=model, raw_input_contents=[_images(images)])
        made.inputs.add(name="images", datatype="FP32", shape=[images, 1, 8, 8])
        return grpc_request(self._grpc, "ModelInfer", made.SerializeToString())

    def live(self, transport: str) -> Request:
        """Whether the server is live: a request without a model, which the transport costs most."""
        if transport == "grpc":
            return grpc_request(self._grpc, "ServerLive", b"")
        return Request(f"http://{self._http}/v2/health/live", {})

    def cpu_us(self) -> float:
        """CPU time so far, of all its threads."""
        return self._schedstat(0)

    def cpu_wait_us(self) -> float:
        """How long its threads have waited for a processor, which others had."""
        return self._schedstat(1)

    def _schedstat(self, field: int) -> float:
        tasks = Path(f"/proc/{self._pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[field]) for task in tasks) / 1000

    def resident_bytes(self) -> int:
        pages = int(Path(f"/proc/{self._pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def serving(
    models: Mapping[str, Path], folder: Path, environment: Mapping[str, str] | None = None
) -> Iterator[Program]:
    """`opscope serve-model`; with an `environment`, under `opscope run`."""
    command = ["opscope", "run", "--"] if environment is not None else []
    command += ["opscope", "serve-model", "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"]
    command += [f"{name}={path}" for name, path in models.items()]
    path = f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}"
    env = {**os.environ, "PATH": path, **(environment or {})}
    with _running(command, env, folder) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        if not line.startswith("serving gRPC "):
            raise RuntimeError(f"opscope serve-model did not start: {line}")
        words = line.split()
        yield Program(process, words[2].rstrip(","), words[4])


@contextmanager
def naive(archive: Path, folder: Path) -> Iterator[Request]:
    """The naive server; what it is asked."""
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
        body = json.dumps({"image": base64.b64encode(_images(1)).decode()}).encode()
        headers = {"content-type": "application/json"}
        yield Request(f"http://127.0.0.1:{port}/predict", headers, body)


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
