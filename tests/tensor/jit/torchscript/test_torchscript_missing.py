"""Operators that the core lacks: one error names them all, wherever they stand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from opscope import tensor as ot
from opscope.tensor import jit
from tests.tensor.jit.torchscript.compare import compiled, loaded

torch: Any = pytest.importorskip("torch")

# PyTorch announces that torch.export replaces TorchScript.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit", "ignore::torch.jit.TracerWarning")

F: Any = torch.nn.functional

if TYPE_CHECKING:
    Tensor = Any
else:
    Tensor = torch.Tensor


def lacking(model: Any, path: Path) -> list[str]:
    torch.jit.save(model, str(path))
    with pytest.raises(ValueError, match="the tensor core lacks") as caught:
        jit.load(path)
    return str(caught.value).partition("the tensor core lacks ")[2].split(", ")


def test_all_missing_operators_are_named_at_once(tmp_path: Path) -> None:
    def function(x):  # type: ignore[no-untyped-def]
        return torch.fft.fft(x).real + torch.linalg.inv(x) + F.conv_transpose2d(x, x)

    assert lacking(torch.jit.script(function), tmp_path / "net.pt") == [
        "aten::conv_transpose2d",
        "aten::fft_fft",
        "aten::linalg_inv",
        "aten::real",
    ]


def test_options_are_named_behind_missing_operators(tmp_path: Path) -> None:
    class Up(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.turned = torch.nn.ConvTranspose2d(2, 2, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.turned(F.interpolate(x, scale_factor=2.0, mode="bilinear"))

    traced = compiled(Up(), "trace", torch.ones(1, 2, 4, 4))
    assert lacking(traced, tmp_path / "net.pt") == [
        "aten::_convolution transposed",
        "aten::upsample_bilinear2d",
    ]


class Decided(torch.nn.Module):  # type: ignore[misc]
    """Control flow on the results of missing operators, with others in it and after it."""

    def forward(self, x: Tensor, n: int) -> Tensor:
        found = torch.linalg.inv(x)
        parts = [x]
        if bool(found.sum() > 0):
            x = torch.linalg.pinv(x) + 1
            parts.append(x)
        else:
            x = torch.linalg.det(x) + found
        for each in found.unbind(0):
            parts.append(torch.fft.fft(each).abs())
        for _ in range(found.size(0)):
            x = x + torch.special.i0(x)
        while bool(found.max() > 1):
            found = torch.special.i1(found)
        for _ in range(n):
            x = x + torch.trace(found)
            parts.append(x)
        y = torch.special.erfcx(x) if bool(found.min() > 0) else torch.special.ndtri(x)
        return y + torch.histc(parts[0])


def test_all_are_named_where_missing_ones_decide_what_runs(tmp_path: Path) -> None:
    named = lacking(torch.jit.script(Decided()), tmp_path / "net.pt")
    wanted = "fft_fft histc i0 linalg_det linalg_inv linalg_pinv special_erfcx special_i1"
    assert [each.removeprefix("aten::") for each in named] == [
        *wanted.split(),
        "special_ndtri",
        "trace",
    ]


def test_an_operator_that_is_missing_in_code_that_does_not_run_is_no_error(tmp_path: Path) -> None:
    class Rare(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Tensor) -> Tensor:
            if self.training:
                return torch.linalg.inv(x)
            return x + 1

    own = loaded(torch.jit.script(Rare().eval()), tmp_path / "net.pt")
    assert own(ot.zeros([2])).tolist() == [1.0, 1.0]


def test_operators_that_are_there_are_not_named_behind_missing_ones(tmp_path: Path) -> None:
    def function(x):  # type: ignore[no-untyped-def]
        found = torch.linalg.inv(x)
        rows = found.size(0) // 2 * 3 + found.dim()
        first, second = torch.split(found, [1, 2], dim=1)
        both = torch.cat([found[0:1], found * 2 - 1], 0).reshape(-1, rows)
        masked = found[found > 0]
        return F.pad(both.sum() + first + second + masked[0], [1, 1]) - 3 + found.to(torch.int64)

    assert lacking(torch.jit.script(function), tmp_path / "net.pt") == ["aten::linalg_inv"]
