"""The kinds py::NAME of tensors do what opscope.tensor does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope import tensor as ot
from tests.examples import examples
from tests.graphs.graphs import of_node, program

T = ot.zeros([2, 3, 4])
DTYPES = [ot.float32, ot.float64, ot.int32, ot.int64, ot.uint8, ot.bool, ot.float16, ot.bfloat16]


def test_what_is_asked_of_a_tensor() -> None:
    assert program(of_node("py::dim", ["Tensor"], ["int"]))(T) == 3
    assert program(of_node("py::numel", ["Tensor"], ["int"]))(T) == 24
    assert program(of_node("py::len", ["Tensor"], ["int"]))(T) == 2
    assert program(of_node("py::size", ["Tensor"], ["List[int]"]))(T) == [2, 3, 4]
    assert program(of_node("py::dtype", ["Tensor"], ["Dtype"]))(T) is ot.float32
    is_one = program(of_node("py::is", ["Tensor", "Tensor"], ["bool"]))
    assert is_one(T, T) is True
    assert is_one(T, T.view(24)) is is_one(T, T.clone()) is False
    size = program(of_node("py::size", ["Tensor", "int"], ["int"]))
    assert [size(T, dim) for dim in range(-3, 3)] == [2, 3, 4, 2, 3, 4]
    for dim in (-4, 3, 2**62):
        with pytest.raises(IndexError):
            size(T, dim)
    with pytest.raises(TypeError, match="len"):
        program(of_node("py::len", ["Tensor"], ["int"]))(ot.tensor(1.0))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: dtype.name)
def test_a_tensor_of_one_element_is_a_number(dtype: ot.dtype) -> None:
    element = ot.tensor([[1.75]]).to(dtype)
    for kind, convert in (("int", int), ("float", float), ("bool", bool)):
        run = program(of_node(f"py::{kind}", ["Tensor"], [kind]))
        assert run(element) == convert(element)
        assert type(run(element)) is convert
        with pytest.raises(ValueError, match="24 elements"):
            run(T)


LEVELS = {
    "int": st.integers(-(2**40), 2**40),
    "float": st.floats(width=32),
    "bool": st.booleans(),
}


def outcome(function: Any, *inputs: Any) -> Any:
    try:
        made = function(*inputs)
    except (ValueError, TypeError, OverflowError) as error:
        return type(error).__name__
    return made.dtype.name, made.shape, str(made.tolist())


@pytest.mark.parametrize("dtype", [None, *DTYPES], ids=str)
@pytest.mark.parametrize("depth", range(4))
@pytest.mark.parametrize("number", LEVELS)
def test_a_tensor_is_made_of_numbers(number: str, depth: int, dtype: ot.dtype | None) -> None:
    values: st.SearchStrategy[Any] = LEVELS[number]
    type_text = number
    for _ in range(depth):
        values = st.lists(values, max_size=2)
        type_text = f"List[{type_text}]"
    run = program(of_node("py::tensor", [type_text, "Optional[Dtype]"], ["Tensor"]))

    @examples(5)
    @given(values)
    def check(data: Any) -> None:
        assert outcome(run, data, dtype) == outcome(lambda d, t: ot.tensor(d, dtype=t), data, dtype)

    check()


def test_without_a_dtype_it_is_that_of_the_numbers() -> None:
    assert program(of_node("py::tensor", ["List[int]"], ["Tensor"]))([1, 2]).dtype is ot.int64
