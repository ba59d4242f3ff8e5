"""Functions and methods composed of operators: values, dtypes and gradients are PyTorch's."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from opscope import tensor as ot
from opscope.tensor import composed

RANDOM = np.random.default_rng(3)
A = RANDOM.normal(size=(3, 4)).astype(np.float32)
B = RANDOM.normal(size=(3, 4)).astype(np.float32)
C = RANDOM.normal(size=(2, 3, 4)).astype(np.float32)
D = RANDOM.normal(size=(2, 4, 3)).astype(np.float32)
S = RANDOM.normal(size=(4, 4)).astype(np.float32)
V = RANDOM.normal(size=(4,)).astype(np.float32)
P = np.abs(A) + 0.5
U = RANDOM.uniform(0.1, 0.9, size=(3, 4)).astype(np.float32)
I = RANDOM.integers(0, 5, size=(3, 4))  # noqa: E741
J = RANDOM.integers(1, 5, size=(3, 4))
W = RANDOM.normal(size=(3, 3)).astype(np.float32)
M = A > 0
ODD = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.5], np.float32)
ODD2 = np.array([-0.0, 1.0, 0.0, -0.0, np.inf, 1.0, 2.0, -1.5], np.float32)
PLACES = np.array([2, 0])

Run = Callable[..., Any]

CASES: dict[str, tuple[Any, ...]] = {}


def case(name: str, run: Run, *arrays: Any) -> None:
    assert name not in CASES
    CASES[name] = (run, *arrays)


for one in (
    "absolute arcsin arccos arctan asinh atanh deg2rad rad2deg erfc fix frac logit negative "
    "positive signbit sinc nan_to_num isposinf isneginf isreal fliplr flipud ravel trace "
    "nansum nanmean median msort argwhere adjoint diag diag_embed diff norm cov corrcoef"
).split():
    square = one in ("trace",)
    case(
        one,
        lambda lib, x, one=one: getattr(lib, one)(x) if hasattr(lib, one) else getattr(x, one)(),
        S if square else U,
    )
for one in "nan_to_num signbit isposinf isneginf isreal nansum nanmean median".split():
    case(f"{one} of odd numbers", lambda lib, x, one=one: getattr(lib, one)(x), ODD)
for two in (
    "atan2 arctan2 copysign fmax fmin fmod greater greater_equal hypot less less_equal logaddexp2 "
    "multiply not_equal subtract true_divide divide xlogy dist inner vdot kron"
).split():
    first, second = (A, P) if two != "vdot" else (V, V * 2)
    case(two, lambda lib, x, y, two=two: getattr(lib, two)(x, y), first, second)
for two in "atan2 copysign fmax fmin hypot heaviside".split():
    case(f"{two} of odd numbers", lambda lib, x, y, two=two: getattr(lib, two)(x, y), ODD, ODD2)
for two in "divide fmod floor_divide true_divide subtract".split():
    case(f"{two} of integers", lambda lib, x, y, two=two: getattr(lib, two)(x - 3, y), I, J)

case("sgn", lambda lib, x: lib.sgn(x.detach()), A)
case("acosh", lambda lib, x: lib.acosh(x), P + 1)
case("clamp by tensors", lambda lib, x, y: lib.clamp(x, y, y + 0.5), A, B)
case("clamp by both", lambda lib, x, y: x.clamp(lib.full_like(y, -0.2), y.abs()), A, B)
case("clip", lambda lib, x: x.clip(-0.5, 0.5), A)
case("clamp_min", lambda lib, x: x.clamp_min(0.1), A)
case("clamp_max", lambda lib, x: lib.clamp_max(x, 0.1), A)
case("div trunc", lambda lib, x, y: lib.div(x, y, rounding_mode="trunc"), A * 9, P)
case("div floor", lambda lib, x, y: x.detach().div(y.detach(), rounding_mode="floor"), A * 9, P)
case("div trunc of integers", lambda lib, x, y: lib.div(x - 3, y, rounding_mode="trunc"), I, J)
case("where alone", lambda lib, x: lib.where(x), M)
case("where numbers", lambda lib, m, x: lib.where(m, x, 0.0), M, A)
case("where two numbers", lambda lib, m: lib.where(m, 1.0, 0.0), M)
case("round decimals", lambda lib, x: lib.round(x, decimals=2), A.astype(np.float64))
case("addmv", lambda lib, v, m, w: lib.addmv(v, m, w, beta=2, alpha=0.5), V, S, V)
case("addr", lambda lib, m, v, w: lib.addr(m, v, w, alpha=2), S, V, V)
case("baddbmm", lambda lib, c, d: lib.baddbmm(lib.ones(2, 3, 3), c, d, beta=2, alpha=0.5), C, D)
case("addbmm", lambda lib, w, c, d: lib.addbmm(w, c, d), W, C, D)
case(
    "cross",
    lambda lib, x, y: lib.linalg.cross(x, y, dim=0) if lib is torch else lib.cross(x, y, 0),
    A,
    B,
)
case("tensordot", lambda lib, c, d: lib.tensordot(c, d, dims=([1, 2], [2, 1])), C, D)
case("tensordot 1", lambda lib, c, s: lib.tensordot(c, s, dims=1), C, S)
case("cdist", lambda lib, x, y: lib.cdist(x, y), A, B)
case("cdist 1", lambda lib, x, y: lib.cdist(x, y, p=1.0), A, B)
case("pdist", lambda lib, x: lib.pdist(x), A)
case("cartesian_prod", lambda lib, v: lib.cartesian_prod(v, v[:2]), V)
for equation, operands in {
    "ij,kj->ik": (A, B),
    "ij,ij->": (A, B),
    "bij,bjk->bik": (C, D),
    "bij,bjk": (C, D),
    "ii->i": (S,),
    "ii": (S,),
    "ij->ji": (A,),
    "...ij,...jk->...ik": (C, D),
    "i,j->ij": (V, V),
    "ij,j,j->i": (A, V, V),
    "bij,jk,kl->bil": (C, S, S),
    "b...->...b": (C,),
}.items():
    case(f"einsum {equation}", lambda lib, *x, e=equation: lib.einsum(e, *x), *operands)
case("norm 0", lambda lib, x: x.detach().norm(0), A)
for p in (1, 2, 3, math.inf, -math.inf, "fro"):
    case(f"norm {p}", lambda lib, x, p=p: lib.norm(x, p), A)
    if p != "fro":
        case(f"norm {p} dim", lambda lib, x, p=p: x.norm(p, dim=1, keepdim=True), A)
case("norm of zeros", lambda lib, x: (x * 0).norm(), A)
case("std unbiased", lambda lib, x: x.std(unbiased=False), A)
case("std of a bool", lambda lib, x: x.std(False), A)
case("var dim", lambda lib, x: x.var(1, unbiased=False), A)
case("var dim, positional", lambda lib, x: lib.var(x, 1, False, True), A)
case("var correction", lambda lib, x: lib.var(x, dim=0, correction=0), A)
case("var half a correction", lambda lib, x: lib.var(x, dim=0, correction=1.5), A)
case("var_mean", lambda lib, x: lib.var_mean(x, dim=1), A)
case("std_mean", lambda lib, x: lib.std_mean(x, unbiased=False), A)
case("cumsum dtype", lambda lib, x: lib.cumsum(x, 0, dtype=lib.float64), A)
case("prod dtype", lambda lib, x: lib.prod(x, dtype=lib.float64), U)
case("cumprod", lambda lib, x: x.cumprod(dim=1), U)
case("renorm", lambda lib, x: lib.renorm(x, 2, 0, 1.0), A)
case("aminmax", lambda lib, x: tuple(lib.aminmax(x, dim=1)), A)
case("median dim", lambda lib, x: tuple(lib.median(x, 1)), A)
case("kthvalue", lambda lib, x: tuple(lib.kthvalue(x, 2, 1, True)), A)
for how in ("linear", "lower", "higher", "nearest", "midpoint"):
    case(f"quantile {how}", lambda lib, x, how=how: lib.quantile(x, 0.3, interpolation=how), A)
case("quantile dim", lambda lib, x: lib.quantile(x, lib.tensor([0.25, 0.5]), dim=1), A)
case("quantile kept", lambda lib, x: x.quantile(0.5, dim=0, keepdim=True), A)
case("diff twice", lambda lib, x: lib.diff(x, n=2, dim=1), A)
case("trapezoid", lambda lib, x: lib.trapezoid(x, dx=0.5, dim=0), A)
case("bincount", lambda lib, x: lib.bincount(x.reshape(-1), minlength=8), I)
case(
    "bincount weights", lambda lib, x, w: lib.bincount(x.reshape(-1), w.detach().reshape(-1)), I, A
)
case("histc", lambda lib, x: lib.histc(x.detach(), 5, -1, 1), A)
case("logcumsumexp", lambda lib, x: lib.logcumsumexp(x, 1), A)
case("cosine_similarity", lambda lib, x, y: lib.cosine_similarity(x, y, dim=1), A, B)
case("narrow", lambda lib, x: x.narrow(1, 1, 2), A)
case("take", lambda lib, x: x.take(lib.tensor([[0, 5], [11, 2]])), A)
case("take_along_dim", lambda lib, x: lib.take_along_dim(x, lib.argsort(x.detach(), dim=1), 1), A)
case("index_fill", lambda lib, x, i: x.index_fill(0, i, 2.0), A, PLACES)
case("index_copy", lambda lib, x, i, y: x.index_copy(0, i, y[:2]), A, PLACES, B)
case("masked_scatter", lambda lib, x, m, y: x.masked_scatter(m, y), A, M, B)
case("select_scatter", lambda lib, x, v: x.select_scatter(v, 0, 1), A, V)
case("scatter_reduce", lambda lib, x, i, y: x.scatter_reduce(1, i.clamp(max=3), y, "sum"), A, I, B)
case(
    "scatter_reduce mean",
    lambda lib, x, i, y: lib.scatter_reduce(x, 1, i.clamp(max=3), y, "mean"),
    A,
    I,
    B,
)
case("nonzero as a tuple", lambda lib, x: x.nonzero(as_tuple=True), M)
case("isin", lambda lib, x: lib.isin(x, lib.tensor([1, 3])), I)
case("unique", lambda lib, x: lib.unique(x), I)
case("unique all", lambda lib, x: x.unique(return_inverse=True, return_counts=True), I)
case("unique dim", lambda lib, x: lib.unique(x % 2, dim=0, return_inverse=True), I)
case(
    "unique_consecutive",
    lambda lib, x: lib.unique_consecutive(x % 2, return_counts=True),
    I.reshape(-1),
)
case("searchsorted", lambda lib, x: lib.searchsorted(lib.tensor([0.0, 1.0, 2.0]), x.detach()), A)
case("bucketize", lambda lib, x: lib.bucketize(x, lib.tensor([1, 3]), right=True), I)
case("movedim", lambda lib, x: x.movedim(0, -1), C)
case("movedim lists", lambda lib, x: lib.movedim(x, (0, 1), (2, 0)), C)
case("swapaxes", lambda lib, x: x.swapaxes(0, 2), C)
case("unflatten", lambda lib, x: x.unflatten(1, (2, -1)), A)
case("tile", lambda lib, x: x.tile(2, 1, 3), A)
case("tile of one", lambda lib, x: lib.tile(x, (2,)), A)
case("repeat_interleave", lambda lib, x: x.repeat_interleave(2, dim=1), A)
case("repeat_interleave flat", lambda lib, x: lib.repeat_interleave(x, 3), A)
case(
    "repeat_interleave each",
    lambda lib, x: lib.repeat_interleave(x, lib.tensor([1, 0, 2]), dim=0),
    A,
)
case("as_strided", lambda lib, x: x.as_strided((2, 2), (1, 2), 1), A)
case("tensor_split", lambda lib, x: lib.tensor_split(x, 3, dim=1), A)
case("tensor_split at", lambda lib, x: x.tensor_split([1, 2]), A)
for join in ("hstack", "vstack", "dstack", "column_stack", "concat", "row_stack"):
    case(join, lambda lib, x, y, join=join: getattr(lib, join)([x, y]), A, B)
    case(f"{join} of vectors", lambda lib, v, join=join: getattr(lib, join)((v, v)), V)
for least in ("atleast_1d", "atleast_2d", "atleast_3d"):
    case(least, lambda lib, v, least=least: getattr(lib, least)(v), V)
    case(f"{least} of two", lambda lib, x, v, least=least: getattr(lib, least)(x, v), A, V)
case("broadcast_tensors", lambda lib, x, v: lib.broadcast_tensors(x, v), A, V)
for turns in (1, 2, 3, 4):
    case(f"rot90 {turns}", lambda lib, x, turns=turns: lib.rot90(x, turns), A)
for offset in (-1, 0, 2):
    case(f"diagonal {offset}", lambda lib, x, o=offset: x.diagonal(o, 0, 2), C)
    case(f"diag_embed {offset}", lambda lib, x, o=offset: lib.diag_embed(x, o), A)
    case(f"diag {offset}", lambda lib, v, o=offset: lib.diag(v, o), V)
    case(f"tril_indices {offset}", lambda lib, v, o=offset: lib.tril_indices(3, 4, o), V)
case("triu_indices", lambda lib, v: lib.triu_indices(4, 3), V)
case("meshgrid", lambda lib, v: lib.meshgrid(v, v[:2], indexing="ij"), V)
case("meshgrid xy", lambda lib, v: lib.meshgrid([v, v[:2]], indexing="xy"), V)
case("logspace", lambda lib, v: lib.logspace(0, 2, 5), V)
case("as_tensor", lambda lib, v: lib.as_tensor([1, 2.5], dtype=lib.float64), V)
case("scalar_tensor", lambda lib, v: lib.scalar_tensor(2), V)
case("new_tensor", lambda lib, v: v.new_tensor([1, 2]), V)
case("FloatTensor", lambda lib, v: lib.FloatTensor([1, 2]), V)
case("LongTensor", lambda lib, v: lib.LongTensor([1, 2]), V)
case("Tensor", lambda lib, v: lib.Tensor([1, 2]), V)
case(
    "to",
    lambda lib, x: (x.to("cpu"), x.to("cpu", lib.float64), x.to(lib.device("cpu"), copy=True)),
    A,
)
case("to of another", lambda lib, x, i: x.to(i), P, I)
case("in place", lambda lib, x: x.clone().clip_(-0.5, 0.5).absolute_().cumsum_(0), A)
case("masked_scatter_", lambda lib, x, m, y: x.clone().masked_scatter_(m, y), A, M, B)
case("index_fill_", lambda lib, x, i: x.clone().index_fill_(1, i, -1), A, PLACES)


def flat(found: Any) -> list[Any]:
    return list(found) if isinstance(found, (tuple, list)) else [found]


@pytest.mark.parametrize("name", CASES)
def test_values_dtypes_and_gradients_are_pytorchs(name: str) -> None:
    run, *arrays = CASES[name]
    ours, theirs = [], []
    for array in arrays:
        grad = array.dtype.kind == "f" and "odd" not in name
        ours.append(ot.tensor(array, requires_grad=grad))
        theirs.append(torch.tensor(array, requires_grad=grad))
    found, expected = flat(run(ot, *ours)), flat(run(torch, *theirs))
    assert len(found) == len(expected)
    for own, their in zip(found, expected, strict=True):
        assert tuple(own.shape) == tuple(their.shape)
        assert own.dtype.name == str(their.dtype).partition(".")[2]
        assert own.requires_grad == their.requires_grad
        np.testing.assert_allclose(
            own.detach().numpy(), their.detach().numpy(force=True), atol=2e-5, rtol=2e-5
        )
    if not any(their.requires_grad for their in expected):
        return
    for own, their in zip(found, expected, strict=True):
        if their.requires_grad:
            weights = RANDOM.normal(size=tuple(their.shape))
            (own * ot.tensor(weights).to(own.dtype)).sum().backward(retain_graph=True)
            (their * torch.tensor(weights).to(their.dtype)).sum().backward(retain_graph=True)
    for own, their in zip(ours, theirs, strict=True):
        if their.grad is not None and own.grad is None:  # no path: a gradient of zeros
            assert not their.grad.any()
        elif their.grad is not None:
            assert own.grad is not None
            np.testing.assert_allclose(
                own.grad.numpy(), their.grad.numpy(force=True), atol=2e-4, rtol=2e-4
            )


def test_every_name_of_the_table_exists_in_pytorch_and_here() -> None:
    for name, file in composed.FUNCTIONS.items():
        assert hasattr(torch, name) or hasattr(torch, name.removesuffix("_like")), name
        assert callable(composed.find(name, file))
    for name in [*composed.METHODS, *composed.WRITERS]:
        assert hasattr(torch.Tensor, name), name
        assert callable(getattr(ot.Tensor, name))
        assert getattr(ot.Tensor, name).__doc__


def test_the_types_have_every_name_of_the_table() -> None:
    path = Path(composed.__file__).with_name("names.pyi")
    text = path.read_text()
    functions = re.findall(r"^from opscope.tensor.composed.(\w+) import (\w+) as", text, re.M)
    assert {name: file for file, name in functions} == composed.FUNCTIONS
    methods = set(re.findall(r"^    def (\w+)\(", text, re.M))
    assert methods == {*composed.METHODS, *composed.WRITERS}
