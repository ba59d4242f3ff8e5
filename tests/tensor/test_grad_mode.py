"""Grad mode around functions and generators; operators that create leaves; detaching."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from opscope import tensor as ot


def test_modes_decorate_with_and_without_parentheses() -> None:
    @ot.no_grad
    def bare(x: ot.Tensor) -> ot.Tensor:
        """Twice."""
        return x * 2

    @ot.no_grad()
    def called(x: ot.Tensor) -> ot.Tensor:
        return ot.enable_grad(lambda: x * 2)()

    x = ot.tensor([1.0], requires_grad=True)
    assert not bare(x).requires_grad
    assert bare.__doc__ == "Twice."
    assert called(x).requires_grad
    assert ot.is_grad_enabled()


def test_steps_of_a_generator_are_in_its_mode_and_what_is_between_them_is_not() -> None:
    heard: list[object] = []

    @ot.no_grad()
    def steps() -> Generator[bool, str, str]:
        try:
            heard.append((yield ot.is_grad_enabled()))
            try:
                yield ot.is_grad_enabled()
            except KeyError as error:
                heard.append(error)
                yield ot.is_grad_enabled()
        finally:
            heard.append(ot.is_grad_enabled())
        return "done"

    running = steps()
    assert next(running) is False and ot.is_grad_enabled()
    assert running.send("sent") is False and ot.is_grad_enabled()
    error = KeyError("thrown")
    assert running.throw(error) is False and ot.is_grad_enabled()
    with pytest.raises(StopIteration) as stop:
        next(running)
    assert stop.value.value == "done"
    assert heard == ["sent", error, False]
    assert ot.is_grad_enabled()


def test_a_generator_that_is_closed_ends_in_its_mode() -> None:
    modes: list[bool] = []

    @ot.no_grad()
    def steps() -> Generator[int, None, None]:
        try:
            yield 1
        finally:
            modes.append(ot.is_grad_enabled())

    running = steps()
    next(running)
    running.close()
    assert modes == [False] and ot.is_grad_enabled()


def test_operators_that_make_tensors_make_leaves() -> None:
    for made in (
        ot.zeros(2, 3, requires_grad=True),
        ot.randn(2, dtype=ot.float64, device="cpu", requires_grad=True),
        ot.ones_like(ot.tensor([1.0]), requires_grad=True),
        ot.arange(3.0, requires_grad=True),
    ):
        assert made.requires_grad and made.is_leaf
    assert not ot.zeros(2, requires_grad=False).requires_grad
    with pytest.raises(RuntimeError, match="only floating tensors have gradients"):
        ot.zeros(2, dtype=ot.int64, requires_grad=True)
    with pytest.raises(TypeError, match=r"core::sum\(\) got an unexpected keyword.*requires_grad"):
        ot.sum(ot.tensor([1.0]), requires_grad=True)  # type: ignore[call-arg]


def test_a_tensor_leaves_the_tape_in_place() -> None:
    x = ot.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    z = y * 3
    assert y.detach_() is y
    assert y.is_leaf and not y.requires_grad and y.grad_fn is None
    z.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [6, 6]
    with pytest.raises(RuntimeError, match=r"use detach\(\)"):
        (x * 2)[0].detach_()


def test_a_leaf_is_not_written_through_a_view_made_without_gradients() -> None:
    x = ot.tensor([1.0, 2.0], requires_grad=True)
    with ot.no_grad():
        view = x[:1]
    with pytest.raises(RuntimeError, match="core::add_: cannot write in place to a view of a leaf"):
        view.add_(1)
    y = x * 1
    with ot.no_grad():
        view = y[:1]
        view.add_(1)
    with pytest.raises(
        RuntimeError, match="core::add_: cannot write in place, with a gradient, to a view"
    ):
        view.add_(1)
    assert y.tolist() == [2, 2] and x.tolist() == [1, 2]
