"""PyTorch's other forms of operators: the three forms of max, short names, NumPy scalars,
shifts."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
import torch

from opscope import tensor as ot

ARRAY = np.array([[1.0, 5.0, 3.0], [4.0, 2.0, 6.0]])
T = ot.tensor(ARRAY)


def test_max_and_min_have_pytorchs_three_forms() -> None:
    assert ot.max(T).item() == T.max().item() == 6
    assert ot.min(T).shape == ()
    values, indices = ot.max(T, 1)
    assert values.tolist() == [5, 6]
    assert indices.tolist() == [1, 2]
    found = T.min(dim=0, keepdim=True)
    assert found.values.tolist() == [[1, 2, 3]]
    assert found.indices.tolist() == [[0, 1, 0]]
    assert ot.max(T, ot.tensor(4.0)).tolist() == [[4, 5, 4], [4, 4, 6]]
    assert T.min(other=ot.tensor(4.0)).tolist() == [[1, 4, 3], [4, 2, 4]]


def test_pieces_are_views_that_carry_gradients() -> None:
    leaf = T.clone().requires_grad_()
    parts = leaf.split([1, 2], dim=1)
    assert isinstance(parts, tuple)
    assert [part.shape for part in parts] == [(2, 1), (2, 2)]
    assert parts[1].storage().data_ptr() == leaf.storage().data_ptr()
    (parts[0].sum() + 2 * parts[1].sum()).backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [[1, 2, 2], [1, 2, 2]]
    assert [row.tolist() for row in T.unbind()] == ARRAY.tolist()
    assert len(ot.arange(300).chunk(300)) == 300


@pytest.mark.parametrize("scalar", [np.float32(2), np.float64(2), np.int64(2), np.uint8(2)])
def test_scalars_of_numpy_are_numbers(scalar: Any) -> None:
    truth: Any = np.bool_(True)
    t = ot.tensor([1.0, 2.0])
    for own in (t + scalar, scalar + t, ot.add(t, scalar)):
        assert isinstance(own, ot.Tensor)
        assert own.dtype is ot.float32
        assert own.tolist() == [3, 4]
    theirs = torch.tensor([1, 2]) * scalar
    assert str((ot.tensor([1, 2]) * scalar).dtype.name) == str(theirs.dtype).partition(".")[2]
    assert ot.full((2,), scalar).tolist() == [2, 2]
    assert t.var(correction=np.int64(0)).item() == 0.25
    assert ot.layer_norm(t, (np.int64(2),), eps=np.float32(1)).shape == (2,)
    assert t.sum(0, keepdim=truth).shape == (1,)


def test_arrays_are_no_numbers() -> None:
    array: Any = ARRAY
    with pytest.raises(TypeError, match="must be a Tensor or a number, not ndarray"):
        ot.add(T, array)


@pytest.mark.parametrize(
    "sign", [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]
)
def test_signs_of_bits(sign: Any) -> None:
    a, b = [1, 6, 12], [3, 1, 2]
    expected = sign(torch.tensor(a), torch.tensor(b)).tolist()
    assert sign(ot.tensor(a), ot.tensor(b)).tolist() == expected
    assert sign(ot.tensor(a), 2).tolist() == sign(torch.tensor(a), 2).tolist()
    assert sign(2, ot.tensor(b)).tolist() == sign(2, torch.tensor(b)).tolist()
    with pytest.raises(TypeError, match=r"core::bitwise_.*not defined for float"):
        sign(T, T)


def test_inverted_bits_and_truths() -> None:
    assert (~ot.tensor([0, 1, -3])).tolist() == [-1, -2, 2]
    assert (~ot.tensor([True, False])).tolist() == [False, True]
    t = ot.tensor([1, 2])
    t <<= 3
    t |= 1
    assert t.tolist() == [9, 17]


def test_conversions_and_new_tensors_by_short_names() -> None:
    assert T.long().dtype is T.new_zeros(2, dtype=ot.int64).dtype is ot.int64
    assert T.float().dtype is ot.float32
    assert T.bool().dtype is ot.bool
    assert T.new_ones((2, 3)).dtype is ot.float64
    assert T.new_full((2,), 7).tolist() == [7, 7]
    assert T.view_as(ot.empty(3, 2)).shape == (3, 2)
    assert ot.tensor([1.0]).expand_as(T).shape == (2, 3)
    assert T.type_as(ot.tensor([1])).dtype is ot.int64
    assert T.clone().zero_().tolist() == [[0] * 3] * 2


def test_tensors_compare_as_wholes() -> None:
    assert ot.equal(T, T.clone())
    assert not ot.equal(T, T[0])
    assert ot.allclose(T, T + 1e-7)
    assert not T.allclose(T + 1e-3)
    assert not ot.allclose(ot.tensor([float("nan")]), ot.tensor([float("nan")]))


def test_random_operators_repeat_after_a_seed() -> None:
    def draw() -> list[Any]:
        ot.manual_seed(3)
        return [
            ot.dropout(ot.ones(1000), 0.3).tolist(),
            ot.randint(0, 9, (4,)).tolist(),
            ot.randperm(9).tolist(),
            ot.bernoulli(ot.full((9,), 0.5)).tolist(),
            ot.normal(2.0, 3.0, (4,)).tolist(),
            ot.empty(4).uniform_(2, 3).tolist(),
            ot.empty(4).normal_().tolist(),
        ]

    first = draw()
    assert first == draw()
    assert sorted(first[2]) == list(range(9))
    kept = sum(value != 0 for value in first[0])
    assert 620 < kept < 780
    assert set(first[0]) == {0.0, first[0][next(i for i, v in enumerate(first[0]) if v)]}
    assert all(2 <= value < 3 for value in first[5])
    assert set(ot.randint(2, 5, (200,)).tolist()) == {2, 3, 4}
    assert ot.randint(3, (2, 2)).shape == (2, 2)


def test_dropout_scales_and_hands_back_its_input_when_it_does_not_train() -> None:
    ot.manual_seed(0)
    x = ot.ones(4096).requires_grad_()
    out = ot.dropout(x, 0.25)
    assert set(out.tolist()) == {0.0, np.float32(1 / 0.75)}
    out.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == out.tolist()
    assert ot.dropout(x, 0.25, False) is x


def test_batch_norm_moves_the_running_statistics() -> None:
    array = np.random.default_rng(0).normal(size=(4, 3, 5))
    mean, var = np.zeros(3), np.ones(3)
    own_mean, own_var = ot.tensor(mean), ot.tensor(var)
    their_mean, their_var = torch.from_numpy(mean), torch.from_numpy(var)
    for _ in range(2):
        own = ot.batch_norm(ot.tensor(array), None, None, own_mean, own_var, True, 0.3)
        theirs = torch.nn.functional.batch_norm(
            torch.from_numpy(array), their_mean, their_var, training=True, momentum=0.3
        )
        np.testing.assert_allclose(own.numpy(), theirs.numpy(), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(own_mean.numpy(), their_mean.numpy(), rtol=1e-12)
    np.testing.assert_allclose(own_var.numpy(), their_var.numpy(), rtol=1e-12)
    assert own_mean._version == 2


def test_composite_in_place_form_is_on_the_tape() -> None:
    leaf = ot.tensor([1.0, 2.0]).requires_grad_()
    own = (leaf * 1).lerp_(ot.tensor([3.0, 3.0]), 0.25)
    own.sum().backward()
    assert own.tolist() == [1.5, 2.25]
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [0.75, 0.75]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: ot.layer_norm(T, (2,)),
            RuntimeError,
            r"layer_norm.*\[2, 3\].*normalized_shape \[2\]",
        ),
        (lambda: ot.batch_norm(T[0], training=True), RuntimeError, r"batch_norm.*\[3\].*channels"),
        (
            lambda: ot.batch_norm(T, T[:, 0], training=True),
            RuntimeError,
            r"batch_norm: weight.*\[2\].*3",
        ),
        (lambda: ot.batch_norm(T), ValueError, "batch_norm: running_mean is absent"),
        (lambda: ot.batch_norm(T[:1], training=True), ValueError, "batch_norm: one value for each"),
        (lambda: ot.dropout(T, 1.5), ValueError, r"dropout: p is 1\.5"),
        (lambda: ot.gather(T, 1, ot.tensor([[3]])), IndexError, "gather: index 3 .* size 3"),
        (lambda: ot.gather(T, 0, ot.tensor([0])), RuntimeError, r"gather.*\[1\].*\[2, 3\]"),
        (
            lambda: ot.scatter_add(T, 0, ot.tensor([[0]]), ot.ones(1, 1)),
            RuntimeError,
            "scatter_add.*dtype",
        ),
        (lambda: ot.stack([T, T[0]]), RuntimeError, r"stack.*\[2, 3\].*\[3\]"),
        (lambda: ot.split(T, [1, 3], 1), RuntimeError, r"split.*\[1, 3\].*sum to 3"),
        (lambda: ot.chunk(T, 0), RuntimeError, "chunk: 0 chunks"),
        (lambda: ot.unfold(T, 1, 4, 1), RuntimeError, r"unfold: windows of 4.*\[2, 3\]"),
        (lambda: ot.topk(T, 4), RuntimeError, r"topk: k is 4; dimension 1 of sizes \[2, 3\]"),
        (lambda: ot.one_hot(ot.tensor([3]), 3), IndexError, r"one_hot.*3 .*\[1\].*3 classes"),
        (lambda: ot.nll_loss(T, ot.tensor([0, 3])), IndexError, "nll_loss: target 3 .* 3 classes"),
        (lambda: ot.cross_entropy(T, ot.tensor([0])), RuntimeError, r"nll_loss.*\[2, 3\].*\[1\]"),
        (lambda: ot.mse_loss(T, T, reduction="all"), ValueError, 'mse_loss: reduction is "all"'),
        (lambda: ot.mse_loss(T, ot.ones(4)), RuntimeError, r"\[2, 3\].*\[4\]"),
        (
            lambda: ot.scaled_dot_product_attention(T, T[:, :2], T),
            RuntimeError,
            r"attention: query \[2, 3\], key \[2, 2\]",
        ),
        (lambda: ot.randint(3, 3, (2,)), ValueError, "randint: no integers from 3 to below 3"),
        (lambda: ot.randint(3), TypeError, r"randint: expected \(high, size\)"),
        (lambda: ot.dot(T, T), RuntimeError, r"dot: expected sizes .*\[2, 3\]"),
        (lambda: ot.masked_select(T, T), TypeError, "masked_select: a mask is of bools"),
        (lambda: ot.flatten(T, 1, 0), RuntimeError, "flatten: start_dim 1 comes after end_dim 0"),
        (lambda: ot.repeat(T, [2]), RuntimeError, r"repeat: repeats \[2\] of sizes \[2, 3\]"),
        (lambda: ot.repeat(T, [2**62 + 1, 1]), RuntimeError, "repeat: .*than memory holds"),
        (lambda: ot.tril(T[0]), RuntimeError, r"tril: .*\[3\]"),
        (lambda: ot.bernoulli(T), ValueError, "bernoulli: .* is no probability"),
    ],
)
def test_bad_input_is_refused_with_shapes_and_what_would_be_right(
    call: Any, error: Any, text: str
) -> None:
    with pytest.raises(error, match=text):
        call()
