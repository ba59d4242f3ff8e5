"""Models that are loaded, replaced and unloaded while requests run."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tritonclient import grpc as triton
from tritonclient.utils import InferenceServerException

from opscope.errors import OpscopeError
from opscope.serving.batcher import Rule
from opscope.serving.repository import Source, parse_source
from tests.serving.running import running, save_double, save_table, source, triton_client

X = np.ones((1, 4), np.float32)


def infer(client: Any, version: str = "") -> float:
    made = triton.InferInput("x", [1, 4], "FP32")
    made.set_data_from_numpy(X)
    return float(client.infer("m", [made], version).as_numpy("y")[0, 0])


def test_a_model_is_replaced_without_a_dropped_request(tmp_path: Path) -> None:
    path = save_double(tmp_path / "m.pt", 1.0)
    answers: list[list[float]] = []
    stop = threading.Event()
    with running(source("m", path)) as server:

        def ask() -> None:
            found = []
            with triton_client(server.grpc) as client:
                while not stop.is_set():
                    found.append(infer(client))
            answers.append(found)

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        with triton_client(server.grpc) as client:
            for factor in range(2, 12):
                os.replace(save_double(tmp_path / "new.pt", float(factor)), path)
                client.load_model("m")
                assert infer(client) == factor
        stop.set()
        for thread in threads:
            thread.join(60)
    assert len(answers) == 4  # none raised
    for found in answers:
        assert found == sorted(found)  # no older model after a newer one
        assert set(found) <= set(map(float, range(1, 12)))


def test_a_damaged_file_leaves_the_loaded_model_in_place(tmp_path: Path) -> None:
    path = save_double(tmp_path / "m.pt", 5.0)
    with (
        running(source("m", path)) as server,
        triton_client(server.grpc) as client,
    ):
        (tmp_path / "bad.pt").write_bytes(b"no archive")
        os.replace(tmp_path / "bad.pt", path)
        with pytest.raises(InferenceServerException, match="INVALID_ARGUMENT"):
            client.load_model("m")
        assert infer(client) == 5.0
        client.unload_model("m")
        with pytest.raises(InferenceServerException, match="INVALID_ARGUMENT"):
            client.load_model("m")
        assert not client.is_server_ready()
        (state,) = client.get_model_repository_index(as_json=True)["models"]
        assert state["state"] == "UNAVAILABLE"
        assert str(path) in state["reason"]


def test_a_file_that_is_written_over_in_place_does_not_change_the_loaded_model(
    tmp_path: Path,
) -> None:
    path = save_table(tmp_path / "table.pt")
    with running(source("table", path)) as server, triton_client(server.grpc) as client:
        ids = triton.InferInput("ids", [1, 2], "INT64")
        ids.set_data_from_numpy(np.array([[3, 4]], np.int64))
        with open(path, "r+b") as file:
            file.write(bytes(path.stat().st_size))
            file.flush()
            right = [3.0, 3.25, 3.5, 4.0, 4.25, 4.5]
            assert client.infer("table", [ids]).as_numpy("rows").ravel().tolist() == right
            file.truncate(10)
            assert client.infer("table", [ids]).as_numpy("rows").ravel().tolist() == right
        with pytest.raises(InferenceServerException, match=r"table\.pt"):
            client.load_model("table")
        assert client.infer("table", [ids]).as_numpy("rows").ravel().tolist() == right


def test_a_description_given_with_the_load_replaces_the_files(tmp_path: Path) -> None:
    path = save_double(tmp_path / "m.pt", rule=Rule(max_batch_size=4))
    with running(source("m", path)) as server:
        executor = server.server.repository.find("m")
        config = executor.model.config.to_json().replace('batch_size": 4', 'batch_size": 2')
        with triton_client(server.grpc) as client:
            client.load_model("m", config=config)
            assert server.server.repository.find("m").model.config.rule.max_batch_size == 2
            with pytest.raises(InferenceServerException, match="unknown: extra"):
                client.load_model("m", config=config.replace('"instances"', '"extra"'))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("m", "is not NAME=ARCHIVE"),
        ("m=", "is not NAME=ARCHIVE"),
        ("a/b=f", "no name of a model"),
        ("m:0=f", "no version"),
        ("m:x=f", "no version"),
    ],
)
def test_wrong_sources_are_refused(text: str, message: str) -> None:
    with pytest.raises(OpscopeError, match=message):
        parse_source(text)
    assert parse_source("m:2=a=b") == Source("m", "2", "a=b")


def test_a_server_without_a_readable_model_does_not_start(tmp_path: Path) -> None:
    with (
        pytest.raises(OpscopeError, match=r"nothing\.pt"),
        running(source("m", tmp_path / "nothing.pt")),
    ):
        pass
