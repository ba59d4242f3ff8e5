"""Tensors in scripted functions: operators, methods, indexing, compared with Python."""

# The functions to script have the annotations that scripting needs, and no others.
# mypy: disable-error-code="no-untyped-def, no-untyped-call"
# ruff: noqa: SIM300

from __future__ import annotations

from opscope import tensor as ot
from opscope.tensor import Tensor, float64
from opscope.tensor.jit import script
from tests.tensor.jit.scripting.same import check, equal

ot.manual_seed(3)
X = ot.randn((3, 4))
Y = ot.randn((3, 4))


def test_operators() -> None:
    def compute(x, y, n: int):
        z = x + y - 2 * x / (y.abs() + 1)
        z = z // 2 + z % 3 + (x.abs() + 1) ** n + 2**y
        w = (x > 0) & (y <= n) | ~(x == y) ^ (x != 0)
        return -z, +z, w, x @ y.T, 3 > x, abs(z)

    check(compute, [X, Y, 2], [X, X, 1])


def test_operators_in_place_change_the_argument() -> None:
    def change(x, y):
        z = x
        x += 1
        x *= y
        x -= y
        x /= 2
        x **= 2
        x[0] += 5
        return z.sum()

    check(change, [X, Y])


def test_arguments_are_bound_as_in_eager_calls() -> None:
    def bind(x, n: int):
        return (
            x.view(2, n),
            x.reshape((n, 2)),
            x.permute(1, 0),
            x.sum(0),
            x.sum(dim=(0, 1)),
            x.mean(1, keepdim=True),
            ot.cat([x, x], dim=1),
            ot.stack((x, x)),
            ot.zeros(2, n),
            ot.ones((n,), dtype=float64),
            x.clamp(max=0.5),
            ot.full([n], 2.5),
            x.softmax(dim=-1),
            ot.add(x, 1, alpha=2),
            ot.arange(n),
            x.expand(2, 3, 4),
        )

    check(bind, [X, 6])


def test_several_results() -> None:
    def several(x):
        values, indices = x.max(1)
        first, second = x.split(2, dim=1)
        top = x.topk(2)
        a, b, c = x
        parts = x.chunk(2, 1)
        return values, indices, first + second, top.values, top[1], a + b + c, len(parts), parts[0]

    check(several, [X])


def test_forms_of_max_and_min() -> None:
    def extremes(x, y):
        return x.max(), x.max(0), ot.max(x, y), x.min(dim=1, keepdim=True), ot.min(x, other=y)

    check(extremes, [X, Y])


def test_methods_written_in_python() -> None:
    def methods(x, y):
        z = x.new_zeros(2, 3)
        return (
            x.double(),
            x.long(),
            x.view_as(y),
            x.type_as(y),
            x.T,
            x.mT,
            x.clone().zero_(),
            z,
            x.new_full((2,), 1.5),
            x.cpu(),
            ot.allclose(x, y),
            x.equal(x),
        )

    check(methods, [X, Y.double()])


def test_questions() -> None:
    def ask(x, n: int):
        rows, columns = x.shape
        same = x.shape == (3, 4)
        return (
            x.size(0),
            x.size(),
            x.shape[-1],
            x.dim() + x.ndim,
            x.numel(),
            len(x),
            x.dtype == ot.float32,
            x.is_floating_point(),
            rows * columns,
            same,
            x.sum().item(),
            float(x[0, 0]),
            int(x[1, 1]),
            x.device,
        )

    scripted = script(ask)
    found, wanted = scripted(X, 1), ask(X, 1)
    wanted = (*wanted[:-1], str(wanted[-1]))  # a device is its name in graphs
    assert found[1] == list(wanted[1])  # Sizes are a list in graphs.
    assert equal([*found[:1], *found[2:]], [*wanted[:1], *wanted[2:]])


def test_index() -> None:
    t = ot.randn((3, 4, 5))

    def index(t, i: int, rows, mask):
        return (
            t[0],
            t[-1, i],
            t[i:],
            t[:, 1:3, ::2],
            t[..., i],
            t[..., None, i, :],
            t[None, :, None],
            t[0, ..., 1],
            t[rows],
            t[:, rows],
            t[rows, rows],
            t[..., rows],
            t[..., rows, 0],
            t[mask],
            t[rows, 0],
            t[[0, 2]],
            t[:, [0, 1], [1, 2]],
            t[t > 0],
            t[..., 1:, :][0],
            t[-2:, i:-1],
        )

    rows, mask = ot.tensor([2, 0]), ot.tensor([True, False, True])
    check(index, [t, 1, rows, mask], [t, -1, rows, mask])


def test_assignment_to_items() -> None:
    def assign(t, i: int, rows, mask, value):
        t[0] = 1
        t[:, i] = value
        t[..., -1] = 2.5
        t[rows] = 3.0
        t[mask, 1] = 4
        t[t > 2] = -1.0
        t[i, 1:3] += 10
        t[rows, rows] *= 2
        return t.sum()

    rows, mask = ot.tensor([2, 0]), ot.tensor([True, False, True])
    check(assign, [ot.randn((3, 4)), 1, rows, mask, ot.ones(3)])


def test_tensors_of_numbers() -> None:
    def make(n: int, x: float):
        return (
            ot.tensor(n),
            ot.tensor([1, n]),
            ot.tensor([[1.0, x], [n, 2]]),
            ot.tensor([n, 2], dtype=float64),
            ot.tensor([x] * n),
        )

    check(make, [3, 2.5])


def test_random_numbers_are_those_of_the_seed() -> None:
    def noise(x):
        return x + ot.randn_like(x) + ot.rand(3, 4)

    scripted = script(noise)
    ot.manual_seed(5)
    found = scripted(X)
    ot.manual_seed(5)
    assert ot.equal(found, noise(X))


def test_gradients() -> None:
    def loss(x, w, n: int):
        for i in range(n):
            x = (x @ w).relu() if i % 2 else (x @ w).tanh()
            if x.sum() > 2:
                break
        return (x * x).mean()

    w = ot.randn((4, 4))
    for n in range(4):
        gradients = []
        for function in (loss, script(loss)):
            given = w.clone().requires_grad_()
            function(X, given, n).backward() if n else None
            gradients.append(given.grad)
        assert equal(*gradients)


def test_a_tensor_of_annotated_type() -> None:
    def typed(x: Tensor, xs: list[Tensor]) -> Tensor:
        total = x
        for each in xs:
            total = total + each
        xs.append(total)
        return sum(xs[1:], xs[0])

    check(typed, [X, [X, Y]], [X, []])
