"""Models that PyTorch saved as TorchScript give PyTorch's results here."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from opscope import tensor as ot
from opscope.tensor import jit
from tests.tensor.jit.torchscript.compare import assert_close, compiled, loaded, ours, plain

torch: Any = pytest.importorskip("torch")

# PyTorch announces that torch.export replaces TorchScript.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit")

F = torch.nn.functional

if TYPE_CHECKING:
    Tensor = Any
else:
    Tensor = torch.Tensor


class Residual(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, inside: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = torch.nn.Conv2d(inside, out, 3, stride, 1, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(out)
        self.relu = torch.nn.ReLU(inplace=True)
        self.conv2 = torch.nn.Conv2d(out, out, 3, padding=1, groups=out)
        self.down = None
        if stride != 1:
            conv = torch.nn.Conv2d(inside, out, 1, stride)
            self.down = torch.nn.Sequential(conv, torch.nn.BatchNorm2d(out))

    def forward(self, x: Tensor) -> Tensor:
        identity = x
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.conv2(out)
        if self.down is not None:
            identity = self.down(x)
        out += identity
        return self.relu(out)


class Squeeze(torch.nn.Module):  # type: ignore[misc]
    """A block like those of MobileNetV3."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.pool = torch.nn.AdaptiveAvgPool2d(1)
        self.fc = torch.nn.Conv2d(width, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        return x * F.hardsigmoid(self.fc(F.hardswish(self.pool(x))))


def network() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 7, 2, 3), torch.nn.BatchNorm2d(8), torch.nn.Hardswish(inplace=True),
        torch.nn.MaxPool2d(3, 2, 1), Residual(8, 8, 1), Residual(8, 16, 2), Squeeze(16),
        torch.nn.AdaptiveAvgPool2d((1, 1)), torch.nn.Flatten(), torch.nn.Dropout(0.2),
        torch.nn.Linear(16, 10),
    ).eval()  # fmt: skip


@pytest.mark.parametrize("how", ["trace", "script"])
def test_a_network_of_residual_and_squeeze_blocks(how: str, tmp_path: Path) -> None:
    images = torch.randn(2, 3, 32, 32)
    model = compiled(network(), how, images)
    own = loaded(model, tmp_path / "net.pt")
    assert_close(plain(own(*ours(images))), plain(model(images)))
    names = {name for name, _ in model.named_parameters()}
    assert {name for name, _ in own.named_parameters()} <= names
    jit.save(jit.freeze(own), tmp_path / "own.pt")
    assert_close(plain(jit.load(tmp_path / "own.pt")(*ours(images))), plain(model(images)))


@pytest.mark.external
@pytest.mark.parametrize("how", ["trace", "script"])
@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v3_small"])
def test_networks_of_torchvision(name: str, how: str, tmp_path: Path) -> None:
    """Needs a torchvision for the installed PyTorch."""
    torchvision: Any = pytest.importorskip("torchvision", exc_type=ImportError)
    images = torch.randn(1, 3, 64, 64)
    model = compiled(getattr(torchvision.models, name)(weights=None).eval(), how, images)
    assert_close(plain(loaded(model, tmp_path / "net.pt")(*ours(images))), plain(model(images)))


def test_without_pytorch_in_the_process(tmp_path: Path) -> None:
    images = torch.randn(1, 3, 32, 32)
    model = compiled(network(), "script", images)
    torch.jit.save(model, str(tmp_path / "net.pt"))
    np.save(tmp_path / "images.npy", images.numpy())
    program = """
import json, sys
import numpy as np
from opscope import tensor
from opscope.tensor import jit
model = jit.load(sys.argv[1])
result = model(tensor.from_numpy(np.load(sys.argv[2])))
assert "torch" not in sys.modules
print(json.dumps(result.tolist()))
"""
    command = [
        sys.executable,
        "-c",
        program,
        *map(str, (tmp_path / "net.pt", tmp_path / "images.npy")),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert_close(np.array(json.loads(done.stdout)), plain(model(images)))


# ---- operators -----------------------------------------------------------------------------------


def _arithmetic(x, y):  # type: ignore[no-untyped-def]
    return (x + y * 2 - 1) / (y.abs() + 1.0), x**2, x - 2 * y, torch.sub(x, y, alpha=3), 3 - x


def _in_place(x, y):  # type: ignore[no-untyped-def]
    z = x.clone()
    z += y
    z.mul_(2).clamp_(-1.0, 1.0)
    return F.relu(z, inplace=True), F.relu6(y), F.hardtanh(x)


def _shapes(x, y):  # type: ignore[no-untyped-def]
    rows, columns = x.size(0), x.shape[1]
    flat = x.reshape(rows * columns)
    wide = x.view(1, rows, columns).permute(2, 0, 1).contiguous()
    return (
        flat,
        wide,
        x.t(),
        x.unsqueeze(0).squeeze(0),
        x[1],
        x[:, 1:3],
        x.flatten(0),
        y.expand(3, 4),
    )


def _parts(x, y):  # type: ignore[no-untyped-def]
    first, second = x.chunk(2, 1)
    return torch.cat([second, first], 1), torch.stack([x, y]), x.split(2, 1)[1], x.unbind(0)[2]


def _reductions(x, y):  # type: ignore[no-untyped-def]
    return x.sum(), x.mean(1), x.mean([0, 1], keepdim=True), F.softmax(x, 1), F.log_softmax(x, -1)


def _functions(x, y):  # type: ignore[no-untyped-def]
    return F.gelu(x), F.gelu(x, approximate="tanh"), F.silu(x), F.elu(x), F.leaky_relu(x, 0.1), (
        torch.sigmoid(x), torch.tanh(y), x.exp(), torch.sqrt(y.abs()), F.softplus(x), torch.erf(x)
    )  # fmt: skip


def _products(x, y):  # type: ignore[no-untyped-def]
    square = x @ y.t()
    return square, torch.addmm(square, x, y.t()), F.linear(x, y), F.layer_norm(x, [4])


def _pooled(x, y):  # type: ignore[no-untyped-def]
    image = torch.cat([x, y], 1).reshape(1, 1, 6, 4)
    return F.max_pool2d(image, 2), F.avg_pool2d(image, 2, 1), F.adaptive_avg_pool2d(image, [3, 2])


def _attention(x, y):  # type: ignore[no-untyped-def]
    q = x.reshape(1, 1, 3, 4)
    return F.scaled_dot_product_attention(q, y.reshape(1, 1, 3, 4), q, is_causal=True)


def _types(x, y):  # type: ignore[no-untyped-def]
    return x.to(torch.float64), (x * 10).to(torch.int64), torch.where(x > y, x, y), x.double() * 2


OPERATORS: list[Callable[..., Any]] = [
    _arithmetic, _in_place, _shapes, _parts, _reductions, _functions, _products, _pooled,
    _attention, _types,
]  # fmt: skip


@pytest.mark.parametrize("how", ["trace", "script"])
@pytest.mark.parametrize("function", OPERATORS, ids=lambda function: function.__name__)
def test_operators(function: Callable[..., Any], how: str, tmp_path: Path) -> None:
    class Holder(torch.nn.Module):  # type: ignore[misc]
        pass

    torch.manual_seed(2)
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    source = {"trace": torch.jit.trace, "script": torch.jit.script}[how]
    made = source(function, (x, y)) if how == "trace" else source(function)
    own = loaded(made, tmp_path / "net.pt")
    assert_close(plain(own(*ours(x, y))), plain(function(x, y)))


# ---- control flow, and what is refused ----------------------------------------------------------


class Flow(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.rounds = 3

    def forward(self, x: Tensor, mask: Tensor | None = None, n: int = 2) -> Tensor:
        for step in range(self.rounds):
            x = x * 0.5 + step
        y = x + n
        if float(x.sum()) > 10.0:
            y = x - 1
        if mask is not None:
            y = y * mask
        assert y.dim() == 2
        return y


def test_branches_on_the_input_go_both_ways(tmp_path: Path) -> None:
    model = torch.jit.script(Flow())
    own = loaded(model, tmp_path / "flow.pt")
    for x, *others in (
        (torch.ones(2, 2),),
        (100 * torch.ones(2, 2),),
        (torch.ones(2, 2), 2 * torch.ones(2, 2)),
        (torch.ones(2, 2), None, 7),
    ):
        assert_close(plain(own(*ours(x, *others))), plain(model(x, *others)))
    with pytest.raises(AssertionError):
        own(ot.ones([2]))


DOUBLED = """for i in range(70):
      n = torch.add(n, n)
    return x"""
# Each function calls the next one twice: 2**60 calls that write nothing.
CALLS = (
    "".join(
        f"""  def f{n}(self, x: Tensor) -> Tensor:
    a = (self).f{n + 1}(x, )
    return (self).f{n + 1}(a, )
"""
        for n in range(60)
    )
    + "  def f60(self, x: Tensor) -> Tensor:\n    return x"
)
HOSTILE = {
    "return torch.add(x, torch.pow(10, 100000))": "a power of 100000",
    f"n = 2\n    {DOUBLED}": "64 bits",
    f"n = [1]\n    {DOUBLED}": "a list or text of more",
    "for i in range(1000000000):\n      pass\n    return x": "a loop of more than",
    "return (self).forward(x, )": "nested too deeply",
    "del x\n    return x": "delete is not translated",
    "import os\n    return x": "import is not translated",
    'return __import__("os")': "the name __import__",
    "return x.__class__": "the attribute __class__",
    "return CONSTANTS.c9": "tuple index out of range",
    "return (lambda: x)()": "lambda is not translated",
    f"return (self).f0(x, )\n{CALLS}": "more than 100000 steps",
    "a, b = x, x, x\n    return a": "3 values for 2 names",
}


@pytest.mark.parametrize("body", HOSTILE)
def test_code_that_is_no_model_is_refused(body: str, tmp_path: Path) -> None:
    class Net(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Tensor) -> Tensor:
            return x + 1

    torch.jit.save(torch.jit.script(Net()), str(tmp_path / "net.pt"))
    with zipfile.ZipFile(tmp_path / "net.pt") as before:
        entries = {name: before.read(name) for name in before.namelist()}
    with zipfile.ZipFile(tmp_path / "bad.pt", "w") as after:
        for name, content in entries.items():
            if name.endswith(".py"):
                head, _, _ = content.decode().partition("    return ")
                content = f"{head}    {body}\n".encode()
            after.writestr(name, content)
    with pytest.raises(ValueError, match=r"bad\.pt: ") as caught:
        jit.load(tmp_path / "bad.pt")
    assert HOSTILE[body] in str(caught.value)
