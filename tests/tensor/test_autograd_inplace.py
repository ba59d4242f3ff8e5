"""Writes in place with a gradient, against PyTorch: views and their bases share one history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from opscope import tensor as ot


def row_scaled(m: Any, x: Any, z: Any) -> Any:
    y = x * 2
    y[0].mul_(3)
    return (y * y).sum()


def column_assigned(m: Any, x: Any, z: Any) -> Any:
    y = x * 2
    y[:, 1] = z
    return (y * y).sum()


def number_assigned(m: Any, x: Any, z: Any) -> Any:
    y = x * 2
    y[0, 1] = 0.0
    y[1, :2].fill_(3)
    return (y * y).sum()


def constant_filled_in(m: Any, x: Any, z: Any) -> Any:
    y = m.zeros(2, 3)
    y[:, 1] = z
    y[:, 2] = z * x[:, 0]
    return (y * y).sum()


def two_views_written(m: Any, x: Any, z: Any) -> Any:
    y = x * 2
    row, turned = y[0], y.t()
    row.mul_(3)
    turned.add_(1)
    return (row * row).sum() + (turned[0] * y[:, 0]).sum()


def view_of_a_view(m: Any, x: Any, z: Any) -> Any:
    y = x * 2
    y.view(6)[1::2].mul_(m.tensor([1.0, 2.0, 3.0]))
    y[:, ::2][1].add_(z)
    return (y * y).sum()


def base_written_under_no_grad(m: Any, x: Any, z: Any) -> Any:
    y = x * 2
    row = y[0]
    with m.no_grad():
        y.mul_(5)
    return (row * row).sum() + y.sum()


def base_not_in_order(m: Any, x: Any, z: Any) -> Any:
    y = x.t() * 1
    y[1].mul_(z)
    y[:, 0].copy_(m.tensor([1.0, 2.0, 3.0]))
    return (y * y).sum()


def written_off_the_tape(m: Any, x: Any, z: Any) -> Any:
    y = x * 2
    y.detach().mul_(2)
    return (y * 1).sum()


def retained_through_a_write(m: Any, x: Any, z: Any) -> Any:
    y = x * 2
    row = y[0]
    row.retain_grad()
    row.mul_(2)
    (row * row).sum().backward()
    return (x * m.tensor(row.grad.tolist())[0]).sum()


FOLLOWED = [
    row_scaled,
    column_assigned,
    number_assigned,
    constant_filled_in,
    two_views_written,
    view_of_a_view,
    base_written_under_no_grad,
    base_not_in_order,
    written_off_the_tape,
    retained_through_a_write,
]


def leaves(m: Any) -> tuple[Any, Any]:
    return (
        m.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True),
        m.tensor([7.0, 8.0], requires_grad=True),
    )


def outcome(m: Any, program: Callable[..., Any]) -> Any:
    x, z = leaves(m)
    result = program(m, x, z)
    result.backward()
    return result.item(), *(
        leaf.grad if leaf.grad is None else leaf.grad.tolist() for leaf in (x, z)
    )


@pytest.mark.parametrize("program", FOLLOWED, ids=lambda program: program.__name__)
def test_writes_give_the_gradients_pytorch_gives(program: Callable[..., Any]) -> None:
    assert outcome(ot, program) == outcome(torch, program)


def view_of_a_leaf(m: Any, x: Any, z: Any) -> Any:
    x[0].mul_(2)


def expanded_view(m: Any, x: Any, z: Any) -> Any:
    (x * 2)[:, :1].expand([2, 3]).add_(1)


def view_made_under_no_grad(m: Any, x: Any, z: Any) -> Any:
    y = x * 2
    with m.no_grad():
        row = y[0]
    row.mul_(z[0])


def output_of_a_custom_function(m: Any, x: Any, z: Any) -> Any:
    class First(m.Function if m is ot else m.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x[0]

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return None

    First.apply(x * 2).mul_(2)


def saved_written_through_a_view(m: Any, x: Any, z: Any) -> Any:
    y = x * 1
    w = y * y
    y[0].add_(1)
    w.sum().backward()


REFUSED = [
    (view_of_a_leaf, r"core::mul_: cannot write in place to a view of a leaf .* under no_grad"),
    (expanded_view, r"core::add_: .* share one address in memory.*clone it first"),
    (
        view_made_under_no_grad,
        r"core::mul_: cannot write .* created under no_grad.* outside of no_grad",
    ),
    (output_of_a_custom_function, r"core::mul_: .* that a custom function .*clone it first"),
    (saved_written_through_a_view, r"core::MulBackward: .*\[2, 3\].* version 1, expected 0"),
]


@pytest.mark.parametrize(
    ("program", "says"), REFUSED, ids=lambda value: getattr(value, "__name__", "")
)
def test_arguments_that_pytorch_refuses_are_refused_with_a_remedy(
    program: Callable[..., Any], says: str
) -> None:
    with pytest.raises(RuntimeError):
        program(torch, *leaves(torch))
    with pytest.raises(RuntimeError, match=says):
        program(ot, *leaves(ot))


def test_views_of_a_leaf_are_written_under_no_grad() -> None:
    x, _ = leaves(ot)
    row = x[0]
    with ot.no_grad():
        row.mul_(2)
    (x * row).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[8.0, 13.0, 18.0], [2.0, 4.0, 6.0]]


def test_argument_in_the_written_memory_is_read_before_the_write() -> None:
    x, _ = leaves(ot)
    y = x * 2
    y[0].mul_(y[1])
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[16.0, 20.0, 24.0], [6.0, 10.0, 14.0]]


def test_random_writes_through_random_views_agree_with_pytorch() -> None:
    random = np.random.default_rng(3)

    def program(m: Any, choices: list[tuple[int, int, int]]) -> list[Any]:
        x = m.tensor(np.arange(24.0).reshape(4, 6).tolist(), requires_grad=True)
        y = x * 1
        views = [y]
        for kind, which, operation in choices:
            view = views[which % len(views)]
            if kind == 0:
                view = view[which % view.shape[0]] if view.ndim > 1 else view[::2]
            elif kind == 1:
                view = view[..., 1:] if view.shape[-1] > 1 else view
            elif kind == 2:
                view = view.t() if view.ndim == 2 else view
            views.append(view)
            if operation == 0:
                view.mul_(2)
            elif operation == 1:
                view.add_(x[0, 0])
            elif operation == 2:
                view.fill_(1)
        weights = m.tensor(np.arange(1.0, 25.0).reshape(4, 6).tolist())
        total = (y * weights).sum()
        for view in views:
            total = total + (view * 3).sum()
        total.backward()
        assert x.grad is not None
        return [total.item(), x.grad.tolist()]

    for _ in range(60):
        length = int(random.integers(1, 9))
        choices = [tuple(int(n) for n in random.integers(0, 4, 3)) for _ in range(length)]
        assert program(ot, choices) == program(torch, choices)  # type: ignore[arg-type]
