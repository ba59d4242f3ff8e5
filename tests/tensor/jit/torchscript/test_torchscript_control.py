"""Loops, lists and types that depend on the input, and operators that need them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from opscope import tensor as ot
from tests.tensor.jit.torchscript.compare import assert_close, compiled, loaded, ours, plain

torch: Any = pytest.importorskip("torch")

# PyTorch announces that torch.export replaces TorchScript.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit", "ignore::torch.jit.TracerWarning")

F = torch.nn.functional

if TYPE_CHECKING:
    Tensor = Any
else:
    Tensor = torch.Tensor


class Cell(torch.nn.Module):  # type: ignore[misc]
    """A recurrent cell over as many steps as the input has."""

    def __init__(self) -> None:
        super().__init__()
        self.all = torch.nn.Linear(12, 32)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        hidden = torch.zeros(x.size(0), 8)
        cell = torch.zeros(x.size(0), 8)
        outputs: list[Tensor] = []
        for step in range(x.size(1)):
            i, f, g, o = self.all(torch.cat([x[:, step], hidden], 1)).chunk(4, 1)
            cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
            hidden = o.sigmoid() * cell.tanh()
            outputs.append(hidden)
        return torch.stack(outputs, 1), hidden


def test_a_recurrent_cell_takes_sequences_of_any_length(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = torch.jit.script(Cell().eval())
    own = loaded(model, tmp_path / "cell.pt")
    for steps in (1, 2, 6):
        x = torch.randn(2, steps, 4)
        assert_close(plain(own(*ours(x))), plain(model(x)))


class Collatz(torch.nn.Module):  # type: ignore[misc]
    def forward(self, n: int) -> tuple[int, list[int]]:
        rounds, seen = 0, [n]
        while n != 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
                seen.append(n)
            rounds += 1
        return rounds, seen


class First(torch.nn.Module):  # type: ignore[misc]
    """A value that a loop makes, or None."""

    def forward(self, x: Tensor, least: float) -> Tensor:
        found: Tensor | None = None
        for row in range(0, x.size(0), 2):
            if found is None and float(x[row].sum()) > least:
                found = x[row]
        if found is None:
            return torch.zeros_like(x[0])
        return found


class Early(torch.nn.Module):  # type: ignore[misc]
    def forward(self, x: Tensor) -> Tensor:
        for step in range(x.size(0)):
            x = x * 2
            if float(x.max()) > 50.0:
                return x + step
        return -x


class Pairs(torch.nn.Module):  # type: ignore[misc]
    def forward(self, x: Tensor, flag: bool) -> tuple[Tensor, list[int]]:
        pair, sizes = (x, 1), [5]
        if flag:
            pair = (x * 2, 2)
            sizes.append(7)
        for each in sizes:
            pair = (pair[0] + each, pair[1])
        return pair[0] * pair[1], sizes


FLOWS: list[tuple[type, list[tuple[Any, ...]]]] = [
    (Collatz, [(1,), (6,), (27,)]),
    (First, [(torch.arange(10.0).reshape(5, 2), each) for each in (0.0, 5.0, 100.0)]),
    (Early, [(torch.ones(3),), (20 * torch.ones(3),), (torch.ones(10),)]),
    (Pairs, [(torch.ones(2), True), (torch.ones(2), False)]),
]


@pytest.mark.parametrize(("model", "calls"), FLOWS, ids=[each.__name__ for each, _ in FLOWS])
def test_programs_that_the_input_decides(
    model: type, calls: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    theirs = torch.jit.script(model())
    own = loaded(theirs, tmp_path / "net.pt")
    for given in calls:
        assert_close(plain(own(*ours(*given))), plain(theirs(*given)))


def _indexed(x, y):  # type: ignore[no-untyped-def]
    z = x.clone()
    z[:, 1] = 0.5
    z[0, 2:] += 1
    return z, x[x > 0], x[y[:, 0] > 0], x[torch.tensor([2, 0])], x[:, torch.tensor([1, 1])]


def _padded(x, y):  # type: ignore[no-untyped-def]
    return F.pad(x, [1, 2]), F.pad(x, [0, 1, 2, 0], value=-1.0)


def _made(x, y):  # type: ignore[no-untyped-def]
    n = x.size(1)
    places = torch.arange(n).unsqueeze(0).to(x.dtype)
    mask = torch.full([n, n], float("-inf")).triu(1)
    return x + places, mask, torch.zeros_like(x), x.new_zeros([2, n]), torch.ones(n, 2)


def _quotients(x, y):  # type: ignore[no-untyped-def]
    a = torch.div(x * 10, y, rounding_mode="trunc")
    return a, torch.div(x * 10, y, rounding_mode="floor"), x // 0.3


def _split(x, y):  # type: ignore[no-untyped-def]
    return torch.split(x, [1, 3], 1)[1], x.any(), (x > 0).all(1), x.amax(1)


def _questions(x, y):  # type: ignore[no-untyped-def]
    if x.is_floating_point() and x.dtype == torch.float32 and y.dtype != torch.int64:
        return x + 1
    return x - 1


@pytest.mark.parametrize("how", ["trace", "script"])
@pytest.mark.parametrize(
    "function",
    [_indexed, _padded, _made, _quotients, _split, _questions],
    ids=lambda function: function.__name__,
)
def test_operators(function: Callable[..., Any], how: str, tmp_path: Path) -> None:
    torch.manual_seed(2)
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    source = {"trace": torch.jit.trace, "script": torch.jit.script}[how]
    made = source(function, (x, y)) if how == "trace" else source(function)
    own = loaded(made, tmp_path / "net.pt")
    assert_close(plain(own(*ours(x, y))), plain(function(x, y)))


@pytest.mark.parametrize("how", ["trace", "script"])
@pytest.mark.parametrize("kind", ["group_norm", "conv1d"])
def test_layers_that_are_others_in_another_shape(kind: str, how: str, tmp_path: Path) -> None:
    torch.manual_seed(3)
    if kind == "group_norm":
        norm = torch.nn.GroupNorm(2, 8)
        torch.nn.init.normal_(norm.weight)
        model, x = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), norm), torch.randn(2, 3, 8, 8)
    else:
        convolution = torch.nn.Conv1d(4, 8, 3, stride=2, padding=1, dilation=2, groups=2)
        model, x = torch.nn.Sequential(convolution, torch.nn.BatchNorm1d(8)), torch.randn(2, 4, 11)
    model = model.eval()
    own = loaded(compiled(model, how, x), tmp_path / "net.pt")
    assert_close(plain(own(*ours(x))), plain(model(x)))


def test_an_endless_loop_ends_by_an_interrupt_only_when_it_runs(tmp_path: Path) -> None:
    class Endless(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Tensor) -> Tensor:
            while bool((x > 0).all()):
                x = x + 1
            return x

    own = loaded(torch.jit.script(Endless()), tmp_path / "net.pt")
    assert own(ot.zeros([2])).tolist() == [0.0, 0.0]


def test_what_stays_none_in_a_loop_is_none_after_it(tmp_path: Path) -> None:
    class Never(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Tensor) -> Tensor:
            found: Tensor | None = None
            for _ in range(x.size(0)):
                if self.training:
                    found = x
                x = x + 1
            return x if found is None else found

    own = loaded(torch.jit.script(Never().eval()), tmp_path / "net.pt")
    assert own(ot.zeros([2])).tolist() == [2.0, 2.0]
