"""Archives of torch.jit.save are served; PyTorch only writes them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from tritonclient import grpc as triton

from tests.serving.running import running, source, triton_client

# PyTorch's own words on TorchScript.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit")

CONFIG = {
    "inputs": [{"name": "images", "datatype": "FP32", "shape": [-1, 1, 8, 8]}],
    "outputs": [{"name": "scores", "datatype": "FP32", "shape": [-1, 10]}],
    "max_batch_size": 8,
}
IMAGES = torch.rand(4, 1, 8, 8, generator=torch.Generator().manual_seed(1))


def network() -> nn.Module:
    torch.manual_seed(2)
    layers = (nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(64, 10), nn.Softmax(1)).eval()


def traced(model: nn.Module) -> Any:
    return torch.jit.trace(model, IMAGES)


def scripted(model: nn.Module) -> Any:
    return torch.jit.script(model)


@pytest.mark.parametrize("compiled", [traced, scripted])
@pytest.mark.parametrize("place", ["inside", "beside"])
def test_its_answers_are_pytorchs(
    compiled: Callable[[nn.Module], Any], place: str, tmp_path: Path
) -> None:
    model, path = network(), tmp_path / "net.pt"
    inside = {"serving.json": json.dumps(CONFIG)} if place == "inside" else {}
    torch.jit.save(compiled(model), path, _extra_files=inside)
    if place == "beside":
        (tmp_path / "net.pt.json").write_text(json.dumps(CONFIG))
    with (
        running(source("net", path)) as server,
        triton_client(server.grpc) as client,
        torch.no_grad(),
    ):
        shutil.rmtree(tmp_path)  # the model is in memory
        made = triton.InferInput("images", [4, 1, 8, 8], "FP32")
        made.set_data_from_numpy(IMAGES.numpy())
        scores = client.infer("net", [made]).as_numpy("scores")
        np.testing.assert_allclose(scores, model(IMAGES).numpy(), rtol=1e-5, atol=1e-6)
        assert client.get_model_metadata("net").platform == "pytorch_torchscript"
