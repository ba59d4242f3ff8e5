"""Backward hooks of modules: which gradients they get, in which order, and what they may change."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from opscope import tensor as ot


def numbers(gradients: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(None if each is None else each.flatten().tolist() for each in gradients)


def linear(kinds: Any) -> Any:
    module = kinds.nn.Linear(3, 2)
    with kinds.no_grad():
        module.weight.copy_(kinds.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
        module.bias.zero_()
    return module


def hooks_of_a_layer(kinds: Any) -> list[Any]:
    seen: list[Any] = []
    module = linear(kinds)
    handle = module.register_full_backward_hook(
        lambda m, given, got: seen.append(("after", numbers(given), numbers(got)))
    )
    module.register_full_backward_hook(lambda m, given, got: (given[0] * 2,), prepend=True)

    def triple(module: Any, got: tuple[Any, ...]) -> tuple[Any, ...]:
        seen.append(("before", numbers(got)))
        return (got[0] * 3,)

    before = module.register_full_backward_pre_hook(triple)
    for _ in range(3):
        x = kinds.tensor([[1.0, 2.0, 3.0]], requires_grad=True)
        module.zero_grad()
        module(x).sum().backward()
        seen.append(numbers((x.grad, module.weight.grad)))
        if handle is not None:
            handle.remove()
            handle = None
        else:
            before.remove()
    return seen


def hooks_of_several_arguments(kinds: Any) -> list[Any]:
    seen: list[Any] = []

    class Several(kinds.nn.Module):  # type: ignore[misc]
        def forward(self, a: Any, b: Any, c: Any) -> Any:
            return a * b, a + 1, c

    module = Several()
    module.register_full_backward_hook(
        lambda m, given, got: seen.append((numbers(given), numbers(got)))
    )
    a = kinds.tensor([1.0, 2.0], requires_grad=True)
    results = module(a, kinds.tensor([3.0, 4.0]), 5)
    results[0].sum().backward()
    return [*seen, results[2], numbers((a.grad,))]


def hooks_without_a_gradient_of_the_arguments(kinds: Any) -> list[Any]:
    seen: list[Any] = []
    module = linear(kinds)
    module.register_full_backward_hook(
        lambda m, given, got: seen.append((numbers(given), numbers(got)))
    )
    x = kinds.tensor([[1.0, 2.0, 3.0]])
    module(x).sum().backward()
    with kinds.no_grad():
        module(x)
    return [*seen, numbers((module.weight.grad,))]


def gradients_of_gradients(kinds: Any) -> list[Any]:
    module = kinds.nn.Softplus()
    module.register_full_backward_hook(lambda m, given, got: (given[0] * 2,))
    x = kinds.tensor([0.0], requires_grad=True)
    (gradient,) = kinds.autograd.grad(module(x).sum(), x, create_graph=True)
    gradient.sum().backward()
    return [numbers((gradient, x.grad))]


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
@pytest.mark.parametrize(
    "run",
    [
        hooks_of_a_layer,
        hooks_of_several_arguments,
        hooks_without_a_gradient_of_the_arguments,
        gradients_of_gradients,
    ],
)
def test_hooks_see_and_change_what_pytorchs_do(run: Any) -> None:
    assert run(ot) == run(torch)


def test_a_hook_returns_as_many_gradients_as_there_are() -> None:
    module = linear(ot)
    module.register_full_backward_hook(lambda m, given, got: (given[0], given[0]))
    result = module(ot.ones(1, 3, requires_grad=True)).sum()
    with pytest.raises(RuntimeError, match="invalid number of grad_input, got 2, but expected 1"):
        result.backward()


def test_a_hook_changes_no_gradient_that_does_not_exist() -> None:
    module = linear(ot)
    module.register_full_backward_hook(lambda m, given, got: (ot.ones(1),))
    with pytest.raises(RuntimeError, match="whose arguments require no gradient must return None"):
        module(ot.ones(1, 3)).sum().backward()


def test_results_that_are_no_tensors_are_warned_of() -> None:
    class Named(ot.nn.Module):
        def forward(self, x: Any) -> Any:
            return {"x": x * 2}

    module = Named()
    module.register_full_backward_pre_hook(lambda m, got: None)
    with pytest.warns(UserWarning, match="a tensor or a tuple of tensors for them, not a dict"):
        assert module(ot.ones(1))["x"].item() == 2
