"""Random numbers in PyTorch's spellings: `generator=`, `multinomial`, fills in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opscope import _tensor
from opscope._tensor import Tensor, functions, operators
from opscope.tensor.generator import Generator, drawing


def _drawn(name: str) -> Callable[..., Tensor]:
    run = functions[name]

    def draw(*args: Any, generator: Generator | None = None, **named: Any) -> Tensor:
        if generator is None:
            return run(*args, **named)  # type: ignore[no-any-return]
        with drawing(generator):
            return run(*args, **named)  # type: ignore[no-any-return]

    draw.__name__ = draw.__qualname__ = name
    draw.__doc__ = f"{operators[f'core::{name}'].doc} With `generator`, from its sequence."
    return draw


rand = _drawn("rand")
randn = _drawn("randn")
randint = _drawn("randint")
randperm = _drawn("randperm")
bernoulli = _drawn("bernoulli")

STANDS_FOR = {
    each: operators[f"core::{each.__name__}"]
    for each in (rand, randn, randint, randperm, bernoulli)
}
"""The operators that these functions have the name of, which graphs hold instead."""


def uniform_(
    self: Tensor,
    from_: float = 0,
    to: float = 1,
    *,
    generator: Generator | None = None,
    **named: Any,
) -> Tensor:
    """Fills with numbers drawn uniformly between the two."""
    from_ = named.pop("from", from_)
    with drawing(generator):
        return functions["uniform_"](self, float(from_), float(to))  # type: ignore[no-any-return]


def normal_(
    self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None
) -> Tensor:
    """Fills with numbers of that normal distribution."""
    with drawing(generator):
        return self.copy_(functions["normal"](mean, std, tuple(self.shape), dtype=self.dtype))


def bernoulli_(self: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fills with 1, with probability p, and 0."""
    with drawing(generator):
        if isinstance(p, Tensor):
            return self.copy_(functions["bernoulli"](p.expand(self.shape)))
        drawn = functions["rand"](tuple(self.shape), dtype=_tensor.float64)
    return self.copy_(drawn < p)


def random_(
    self: Tensor, from_: int = 0, to: int | None = None, *, generator: Generator | None = None
) -> Tensor:
    """Fills with ints from `from_` up to `to` - 1; below `from_`, if it is alone."""
    low, high = (0, from_) if to is None else (from_, to)
    if to is None and from_ == 0:
        high = 2**24 if self.is_floating_point() else 2**31 - 1
    with drawing(generator):
        return self.copy_(functions["randint"](low, high, tuple(self.shape)))


def exponential_(self: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fills with numbers of the exponential distribution."""
    with drawing(generator):
        drawn = functions["rand"](tuple(self.shape), dtype=_tensor.float64)
    return self.copy_((-drawn).log1p() / -lambd)


def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None
) -> Tensor:
    """Indices drawn with the probabilities, or weights, in each row: (rows, num_samples), or
    (num_samples,) for a single row.

    RuntimeError for weights below zero, rows without weight, and too few indices.
    """
    if not input.is_floating_point() or input.ndim not in (1, 2):
        raise RuntimeError("multinomial(): one or two dimensions of floats")
    weights: Tensor = input.detach().to(_tensor.float64)
    if bool((weights < 0).any()) or not bool(functions["isfinite"](weights).all()):
        raise RuntimeError("multinomial(): weights are finite, and not below zero")
    possible = (weights > 0).sum(-1)
    if bool((possible == 0).any()):
        raise RuntimeError("multinomial(): a row has no weight above zero")
    if not replacement and num_samples > int(possible.amin()):
        raise RuntimeError(f"multinomial(): fewer than {num_samples} weights above zero")
    if replacement:
        limits = weights.cumsum(-1)
        with drawing(generator):
            drawn = functions["rand"]((*input.shape[:-1], num_samples), dtype=_tensor.float64)
        at = drawn * limits[..., -1:]
        return (limits.unsqueeze(-2) <= at.unsqueeze(-1)).sum(-1).clamp(0, input.shape[-1] - 1)  # type: ignore[no-any-return]
    with drawing(generator):
        drawn = functions["rand"](tuple(input.shape), dtype=_tensor.float64)
    # The first of exponential times with these rates (Efraimidis and Spirakis, 2006).
    times = (-drawn).log1p() / -weights
    return functions["topk"](times, num_samples, -1, False)[1]  # type: ignore[no-any-return]
