"""The mapping of Python arguments to an operator's parameters, and its errors."""

from __future__ import annotations

import operator
import pydoc
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import opscope
from opscope import tensor as ot
from tests.tensor.ranges import ranges


def test_functions_and_methods_are_the_same_operator() -> None:
    a, b = ot.tensor([1.0, 2.0]), ot.tensor([3.0, 5.0])
    assert ot.sub(a, b).tolist() == a.sub(b).tolist() == (a - b).tolist() == [-2, -3]


def test_arguments_may_be_named() -> None:
    a, b = ot.tensor([1.0, 2.0]), ot.tensor([3.0, 5.0])
    assert ot.sub(self=a, other=b).tolist() == [-2, -3]
    assert ot.sub(other=b, self=a).tolist() == [-2, -3]
    assert a.sub(other=b).tolist() == [-2, -3]


@pytest.mark.parametrize(
    ("args", "kwargs", "text"),
    [
        ((), {}, "argument 'self' is missing"),
        ((1.0,), {}, "argument 'other' is missing"),
        ((1.0, 2.0, 3.0, 4.0), {}, "takes . positional arguments, 4 were given"),
        ((1.0, 2.0), {"other": 3.0}, "multiple values for argument 'other'"),
        ((1.0, 2.0), {"wrong": 3.0}, "unexpected keyword argument 'wrong'"),
        ((1.0, "a"), {}, "argument 'other' must be a Tensor or a number, not str"),
        ((1.0, None), {}, "argument 'other' must be a Tensor or a number, not NoneType"),
    ],
)
def test_wrong_call_is_a_type_error_that_names_operator_and_argument(
    args: tuple[Any, ...], kwargs: dict[str, Any], text: str
) -> None:
    args = tuple(ot.tensor([arg]) if isinstance(arg, float) else arg for arg in args)
    with pytest.raises(TypeError, match=rf"core::sub\(\).*{text}"):
        ot.sub(*args, **kwargs)


def test_sizes_may_be_spread() -> None:
    t = ot.tensor([1, 2, 3, 4, 5, 6])
    for view in (t.reshape(2, 3), t.reshape((2, 3)), t.reshape([2, 3]), ot.reshape(t, (2, 3))):
        assert view.shape == (2, 3)
    assert t.reshape(6).shape == t.reshape((6,)).shape == (6,)


@pytest.mark.parametrize("sign", [operator.add, operator.sub, operator.mul, operator.truediv])
def test_numbers_work_on_either_side_and_do_not_widen(sign: Any) -> None:
    array = np.array([1.0, 2.0], np.float32)
    t = ot.from_numpy(array)
    for own, their in ((sign(t, 3), sign(array, 3)), (sign(2.5, t), sign(2.5, array))):
        assert own.dtype is ot.float32
        np.testing.assert_allclose(own.numpy(), their)
    integers = ot.tensor([1, 2], dtype=ot.uint8)
    assert (integers + 1).dtype is ot.uint8
    assert (integers + 1.5).dtype is ot.float32
    assert (ot.tensor([True]) + 1).dtype is ot.int64


def test_sign_gives_way_to_the_other_operand() -> None:
    class Other:
        def __radd__(self, left: Any) -> str:
            return "other"

    assert ot.tensor([1.0]) + Other() == "other"
    with pytest.raises(TypeError, match="unsupported operand"):
        _ = ot.tensor([1.0]) + "a"
    assert (ot.tensor([1.0]) == "a") is False


def test_in_place_sign_returns_the_same_object() -> None:
    t = ot.tensor([1.0, 2.0])
    same = t
    t += 1
    t *= ot.tensor([2.0, 3.0])
    assert t is same
    assert t.tolist() == [4, 9]
    assert t._version == 2


def test_integer_beyond_64_bits_is_an_overflow() -> None:
    with pytest.raises(OverflowError):
        _ = ot.tensor([1]) + (1 << 64)


def test_shapes_that_do_not_broadcast_are_named() -> None:
    with pytest.raises((ValueError, RuntimeError), match=r"core::add.*2.*3"):
        _ = ot.tensor([1.0, 2.0]) + ot.tensor([1.0, 2.0, 3.0])


def test_docs_come_from_the_table() -> None:
    text = pydoc.render_doc(ot.add)
    assert "add(Tensor self, Tensor other" in text
    assert ot.operators["core::add"].doc in pydoc.plain(text).replace("\n    ", "\n")


def test_equal_tensors_are_different_keys() -> None:
    a, b = ot.tensor([1]), ot.tensor([1])
    assert len({a: 1, b: 2}) == 2
    assert hash(a) == hash(a)


def test_operator_written_in_python_is_one_range_around_its_parts() -> None:
    @ot.op("mine::double")
    def double(x: ot.Tensor) -> ot.Tensor:
        return x + x

    with ranges() as seen:
        x = ot.tensor([2.0], requires_grad=True)
        double(x).backward()
    assert seen[:2] == [
        ("mine::double", opscope.RecordScope.FUNCTION),
        ("core::add", opscope.RecordScope.FUNCTION),
    ]
    assert x.grad is not None and x.grad.tolist() == [2]
    with pytest.raises(ValueError, match="namespace::name"):
        ot.op("double")
    with pytest.raises(ValueError, match="the namespace core is reserved"):
        ot.op("core::double")
    with pytest.raises(ValueError, match=r"mine::DoubleBackward: .* reserved for nodes"):
        ot.op("mine::DoubleBackward")


def test_importing_opscope_imports_no_tensors() -> None:
    script = "import sys, opscope; print('opscope._tensor' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stdout.strip() == "False"


def test_numpys_names_of_parameters_are_taken() -> None:
    x: Any = ot.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.sum(axis=1, keepdims=True).tolist() == [[3], [7]]
    assert x.softmax(axis=0).shape == (2, 2)
    with pytest.raises(TypeError, match="multiple values for argument 'axis'"):
        x.sum(dim=0, axis=1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'axis'"):
        x.relu(axis=0)
