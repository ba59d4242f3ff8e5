"""Every query of the dashboard *Serving* has an answer in a real Prometheus, from an observed
`opscope serve-model` whose clients send good and bad requests."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tritonclient import grpc as triton
from tritonclient.utils import InferenceServerException

from tests.dashboards.documents import filled, panel_queries, variable_queries
from tests.dashboards.live import RUN, assert_answered, prometheus
from tests.exporters.conftest import debian, new_prometheus, old_prometheus  # noqa: F401
from tests.exporters.peers import agent, running
from tests.serving.running import save_double, save_table, triton_client

pytestmark = pytest.mark.slow

BOARD = "opscope-serving.json"
SERVE = [sys.executable, "-c", "from opscope.cli import main; main()", "serve-model"]


def tensor(name: str, values: Any, datatype: str) -> Any:
    made = triton.InferInput(name, list(values.shape), datatype)
    made.set_data_from_numpy(values)
    return made


@contextmanager
def requested(address: str) -> Iterator[None]:
    """Meanwhile, a client sends requests; one of three makes its model raise."""
    is_over = threading.Event()
    x = tensor("x", np.ones((2, 4), np.float32), "FP32")
    good = tensor("ids", np.array([[1, 2]]), "INT64")
    bad = tensor("ids", np.array([[1, 99]]), "INT64")

    def send() -> None:
        with triton_client(address) as client:
            while not is_over.wait(0.02):
                client.infer("double", [x])
                client.infer("table", [good])
                with suppress(InferenceServerException):
                    client.infer("table", [bad])

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


@pytest.mark.parametrize("name", ["old_prometheus", "new_prometheus"])
def test_every_panel_has_data(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    program: Path = request.getfixturevalue(name)
    segments = tmp_path / "segments"
    segments.mkdir(mode=0o700)
    models = [f"double={save_double(tmp_path / 'd.pt')}", f"table={save_table(tmp_path / 't.pt')}"]
    labels = ["--labels", "model_id,model_version"]
    serve = [*RUN[:-1], *labels, "--", *SERVE, *models, "--grpc", "127.0.0.1:0", "--http", "off"]
    environ = {**os.environ, "OPSCOPE_DIR": str(segments), "OTEL_SERVICE_NAME": "server"}
    with (
        running(serve, env=environ, stderr=subprocess.PIPE) as server,
        agent(segments) as target,
        prometheus(
            program,
            tmp_path / "prometheus",
            [{"targets": [target], "labels": {"instance": "host"}}],
            native=name == "new_prometheus",
        ) as store,
    ):
        assert server.stderr is not None
        said = server.stderr.readline()
        with requested(said.split()[-1]):
            chosen = {"service": "server", "served": "double|table"}
            asked = {
                filled(promql, "", chosen): panel
                for board, panel, promql in panel_queries()
                if board == BOARD
            }
            asked |= {
                filled(series, "", chosen): label
                for board, series, label in variable_queries()
                if board == BOARD
            }
            assert len(asked) > 10
            assert_answered(store, asked)
