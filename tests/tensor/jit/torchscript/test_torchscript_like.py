"""Operators that are the core's by another name or with options elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.tensor.jit.torchscript.compare import assert_close, compiled, loaded, ours, plain

torch: Any = pytest.importorskip("torch")

# PyTorch announces that torch.export replaces TorchScript.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit", "ignore::torch.jit.TracerWarning")

F: Any = torch.nn.functional


def _by_another(x, y):  # type: ignore[no-untyped-def]
    return y.expand_as(x), x.view_as(x.t()), x.reshape_as(x.t()), (x * 9).long().type_as(x), (
        x.to(y), x.double().to(x), x.clamp_min(0.1), x.clamp_max(y), torch.clamp_min(x, y)
    )  # fmt: skip


def _activations(x, y):  # type: ignore[no-untyped-def]
    return F.mish(x), F.logsigmoid(x), F.glu(x, 1), F.leaky_relu(x.clone(), 0.1, inplace=True)


def _spread(x, y):  # type: ignore[no-untyped-def]
    return x.std(), x.std(0), x.var(1, unbiased=False, keepdim=True), x.std(unbiased=False), (
        torch.var(x, dim=0, correction=0), torch.var(x, correction=2), x.std([0, 1])
    )  # fmt: skip


def _norms(x, y):  # type: ignore[no-untyped-def]
    return x.norm(), x.norm(1, 0), torch.linalg.vector_norm(x, 2.0, [1], True), F.normalize(x)


def _products(x, y):  # type: ignore[no-untyped-def]
    return x.prod(), x.prod(1, keepdim=True), x.cumprod(0), torch.count_nonzero(x > 0, dim=1)


def _sorted(x, y):  # type: ignore[no-untyped-def]
    values, places = x.sort(1, descending=True)
    return values, places, torch.argsort(x, 0), torch.nonzero(x > 0), x[x > 0]


def _bits(x, y):  # type: ignore[no-untyped-def]
    a, b, n = x > 0, y > 0, (x * 9).to(torch.int64)
    return a & b, a | b, a ^ b, ~a, n & 3, n ^ 5, torch.logical_xor(a, b), n // 2


def _scattered(x, y):  # type: ignore[no-untyped-def]
    places = torch.argmax(x, 1, keepdim=True)
    hot = F.one_hot(places[:, 0], 5)
    return hot, x.scatter(1, places, y.expand(3, 1)), x.scatter_add(1, places, x), x.unfold(1, 2, 1)


def _others(x, y):  # type: ignore[no-untyped-def]
    return torch.lerp(x, y, y), torch.isfinite(x / 0), torch.isinf(x / 0), torch.isclose(x, x), (
        torch.logaddexp(x, y), torch.eye(3), torch.unsafe_chunk(x, 2, 1)[1]
    )  # fmt: skip


FUNCTIONS: list[Callable[..., Any]] = [
    _by_another, _activations, _spread, _norms, _products, _sorted, _bits, _scattered, _others
]  # fmt: skip


@pytest.mark.parametrize("how", ["trace", "script"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_operators(function: Callable[..., Any], how: str, tmp_path: Path) -> None:
    torch.manual_seed(1)
    x, y = torch.randn(3, 4), torch.randn(3, 1)
    model = compiled(function, how, x, y)
    assert_close(plain(loaded(model, tmp_path / "net.pt")(*ours(x, y))), plain(model(x, y)))


def test_a_branch_on_an_item_goes_both_ways(tmp_path: Path) -> None:
    def function(x):  # type: ignore[no-untyped-def]
        return x * 2 if x.abs().max().item() < 1 else x - 1

    model = torch.jit.script(function)
    own = loaded(model, tmp_path / "net.pt")
    for x in (torch.tensor([0.5, -0.25]), torch.tensor([3.0])):
        assert_close(plain(own(*ours(x))), plain(model(x)))
