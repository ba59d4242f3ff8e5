"""Trained models give the same results wherever they run: eager, traced, scripted, frozen, loaded
in another process, in C and in Node.js."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from opscope import tensor as ot
from opscope.tensor import jit, nn, optim
from tests.model_runs import Run, c_runner, node_runner

STEPS = 20
# Without a BLAS, sums of products are in another order; freeze folds batch_norm into convolutions.
NEAR: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-5}


class Trained(NamedTuple):
    model: Any
    example: ot.Tensor


class Digits(nn.Module):
    """A small convolutional network for images [batch, 1, 8, 8]."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.second = nn.Conv2d(8, 8, 3, padding=1)
        self.head = nn.Linear(8 * 4 * 4, 10)

    def forward(self, x: ot.Tensor) -> ot.Tensor:
        x = ot.relu(self.norm(self.first(x)))
        x = ot.max_pool2d(ot.relu(x + self.second(x)), 2)
        result: ot.Tensor = self.head(ot.flatten(x, 1))
        return result


class Sequences(nn.Module):
    """A small transformer that classifies sequences [batch, steps, 8]."""

    def __init__(self) -> None:
        super().__init__()
        self.widen = nn.Linear(8, 16)
        self.layers = nn.ModuleList([nn.TransformerEncoderLayer(16, 2, 32) for _ in range(2)])
        self.head = nn.Linear(16, 10)

    def forward(self, x: ot.Tensor) -> ot.Tensor:
        x = self.widen(x)
        for layer in self.layers:
            x = layer(x)
        result: ot.Tensor = self.head(x.mean(1))
        return result


def data() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Images of ten digits, each a pattern with noise, and their digits."""
    random = np.random.default_rng(0)
    patterns = random.random((10, 8, 8), np.float32)
    digits = random.integers(10, size=64)
    return patterns[digits] + 0.1 * random.random((64, 8, 8), np.float32), digits


def trained(model: nn.Module, shape: list[int]) -> Trained:
    images, digits = data()
    inputs, targets = ot.tensor(images.reshape([64, *shape])), ot.tensor(digits)
    optimizer = optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = ot.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]
    return Trained(model.eval(), inputs[:3].contiguous())


@pytest.fixture(scope="module", params=["digits", "sequences"])
def network(request: pytest.FixtureRequest) -> Iterator[Trained]:
    ot.manual_seed(0)
    if request.param == "digits":
        yield trained(Digits(), [1, 8, 8])
    else:
        yield trained(Sequences(), [8, 8])


@pytest.fixture(scope="module")
def run_c(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return c_runner(tmp_path_factory.mktemp("c"))


@pytest.fixture(scope="module")
def run_node(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return node_runner(tmp_path_factory.mktemp("node"))


def array(tensor: Any) -> np.ndarray[Any, Any]:
    return np.asarray(tensor.detach())


def eager(network: Trained) -> np.ndarray[Any, Any]:
    with ot.no_grad():
        return array(network.model(network.example))


def compiled(network: Trained, how: str) -> jit.CompiledModel:
    with ot.no_grad():
        if how == "traced":
            return jit.trace(network.model, network.example)
        return jit.script(network.model)


IN_PYTHON = """
import sys
import numpy as np
from opscope import tensor
from opscope.tensor import jit
result = jit.load(sys.argv[1])(tensor.tensor(np.load(sys.argv[2])))
np.save(sys.argv[3], np.asarray(result.detach()))
"""
IN_NODE = """
const model = await opscope.load(args[0]);
const [numbers, shape] = JSON.parse(args[1]);
const result = await model.forward({ data: Float32Array.from(numbers), shape });
say([[...result.data], result.shape]);
"""


def in_python(path: Path, x: ot.Tensor, folder: Path) -> np.ndarray[Any, Any]:
    np.save(folder / "x.npy", array(x))
    command = [sys.executable, "-c", IN_PYTHON, path, folder / "x.npy", folder / "y.npy"]
    subprocess.run([*map(str, command)], check=True, timeout=300)
    return np.asarray(np.load(folder / "y.npy"))


def in_c(run: Run, path: Path, x: ot.Tensor) -> np.ndarray[Any, Any]:
    numbers = " ".join(f"{each:.9g}" for each in array(x).ravel())
    done = run(path, *x.shape, numbers=numbers)
    assert done.returncode == 0, done.stderr
    return np.array(done.stdout.splitlines()[-1].split(), np.float32)


def in_node(run: Run, path: Path, x: ot.Tensor) -> np.ndarray[Any, Any]:
    found, shape = run(IN_NODE, path, json.dumps([array(x).ravel().tolist(), list(x.shape)]))
    return np.array(found, np.float32).reshape(shape)


@pytest.mark.parametrize("is_frozen", [False, True], ids=["as it is", "frozen"])
@pytest.mark.parametrize("how", ["traced", "scripted"])
def test_a_trained_network(
    network: Trained, how: str, is_frozen: bool, tmp_path: Path, run_c: Run, run_node: Run
) -> None:
    wanted = eager(network)
    model = compiled(network, how)
    np.testing.assert_array_equal(array(model(network.example)), wanted)
    if is_frozen:
        model = jit.freeze(model)
        np.testing.assert_allclose(array(model(network.example)), wanted, **NEAR)
    here = array(model(network.example))
    path = tmp_path / "net.pt"
    jit.save(model, path)
    np.testing.assert_array_equal(in_python(path, network.example, tmp_path), here)
    np.testing.assert_allclose(in_c(run_c, path, network.example), here.ravel(), **NEAR)
    np.testing.assert_allclose(in_node(run_node, path, network.example), here, **NEAR)


def decides(x: ot.Tensor) -> ot.Tensor:
    """Doubles until the sum is large, or turns the sign of what is negative."""
    if float(x.sum()) < 0.0:
        return -x
    rounds = 0
    while float(x.sum()) < 100.0:
        x = x * 2.0
        rounds += 1
    return x + float(rounds)


@pytest.mark.parametrize("first", [-3.0, 5.0, 200.0])
def test_control_flow_that_the_input_decides_goes_each_way(
    first: float, tmp_path: Path, run_c: Run, run_node: Run
) -> None:
    x = ot.tensor([first, 1.0])
    model = jit.script(decides)
    path = tmp_path / "decides.pt"
    jit.save(model, path)
    wanted = array(decides(x))
    np.testing.assert_array_equal(array(model(x)), wanted)
    np.testing.assert_array_equal(in_python(path, x, tmp_path), wanted)
    np.testing.assert_array_equal(in_c(run_c, path, x), wanted)
    np.testing.assert_array_equal(in_node(run_node, path, x), wanted)


@pytest.mark.filterwarnings("ignore:`torch.jit", "ignore::UserWarning")
@pytest.mark.parametrize("kind", ["resnet18", "transformer"])
def test_a_network_that_pytorch_saved(kind: str, tmp_path: Path, run_c: Run, run_node: Run) -> None:
    torch: Any = pytest.importorskip("torch")
    if kind == "resnet18":
        from opscope.bench.truth.programs.resnet18 import resnet18

        net, x = resnet18(classes=10).eval(), torch.randn(1, 3, 32, 32)
    else:
        torch.manual_seed(0)
        layer = torch.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
        net, x = torch.nn.TransformerEncoder(layer, 2).eval(), torch.randn(2, 5, 16)
    with torch.no_grad():
        torch.jit.save(torch.jit.trace(net, x), str(tmp_path / "theirs.pt"))
        wanted = net(x).numpy()
    path, example = tmp_path / "own.pt", ot.from_numpy(x.numpy())
    jit.save(jit.freeze(jit.load(tmp_path / "theirs.pt")), path)
    near: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-4}
    np.testing.assert_allclose(in_python(path, example, tmp_path), wanted, **near)
    np.testing.assert_allclose(in_c(run_c, path, example), wanted.ravel(), **near)
    np.testing.assert_allclose(in_node(run_node, path, example), wanted, **near)
