"""The clients of the bench of serving send as many requests as they should, and get answers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from opscope.bench.serving.load import Request, grpc_request, latencies, throughput
from opscope.serving.protocol import REQUESTS
from tests.serving.running import Running, running, save_double, source

COUNT = 50


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    path = save_double(tmp_path_factory.mktemp("models") / "double.pt")
    with running(source("double", path)) as found:
        yield found


def http_request(server: Running, model: str = "double") -> Request:
    x = {"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}
    url = f"http://{server.http}/v2/models/{model}/infer"
    return Request(url, {"content-type": "application/json"}, json.dumps({"inputs": [x]}).encode())


def answered(server: Running) -> int:
    return server.server.repository.find("double").observer.succeeded.read()


def test_the_steady_client_has_a_latency_for_each_request(server: Running) -> None:
    before = answered(server)
    found = latencies(http_request(server), COUNT, 2000.0, 4)
    assert len(found) == COUNT
    assert min(found) > 0
    assert answered(server) - before == COUNT
    with pytest.raises(RuntimeError, match="404"):
        latencies(http_request(server, "other"), COUNT, 2000.0, 4)


@pytest.mark.skipif(shutil.which("h2load") is None, reason="h2load is not installed")
def test_h2load_speaks_both_protocols(server: Running, tmp_path: Path) -> None:
    made = REQUESTS["ModelInfer"](model_name="double", raw_input_contents=[bytes(16)])
    made.inputs.add(name="x", datatype="FP32", shape=[1, 4])
    grpc = grpc_request(server.grpc, "ModelInfer", made.SerializeToString())
    for request in (http_request(server), grpc):
        before = answered(server)
        assert throughput(request, COUNT, 4, tmp_path) > 0
        assert answered(server) - before == COUNT
    with pytest.raises(RuntimeError, match="h2load"):
        throughput(http_request(server, "other"), COUNT, 4, tmp_path)
