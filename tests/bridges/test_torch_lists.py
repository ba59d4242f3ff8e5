"""Lists and texts among the inputs and outputs of PyTorch's operators reach callbacks."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch

import opscope
from opscope.bridges.torch.values import TorchOther, TorchTensor
from opscope.record.values import ListValue

pytestmark = pytest.mark.usefixtures("torch_attached")

X = torch.ones(2, 3)
X_SEEN = TorchTensor((2, 3), "float32", "cpu")


def _values(name: str, call: Callable[[], object]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Inputs and outputs of the first range of that name in the call."""
    inputs: list[tuple[object, ...]] = []
    outputs: list[tuple[object, ...]] = []

    def start(fn: opscope.RecordFunction) -> None:
        if fn.name == name:
            inputs.append(fn.inputs)

    def end(fn: opscope.RecordFunction, _: object) -> None:
        if fn.name == name:
            outputs.append(fn.outputs)

    handle = opscope.add_global_callback(start, end, needs_inputs=True, needs_outputs=True)
    call()
    opscope.remove_callback(handle)
    return inputs[0], outputs[-1]


@pytest.mark.parametrize(
    ("name", "call", "inputs"),
    [
        ("aten::cat", lambda: torch.cat([X, X], 1), ([X_SEEN, X_SEEN], 1)),
        ("aten::stack", lambda: torch.stack((X, X)), ([X_SEEN, X_SEEN], 0)),
        ("aten::view", lambda: X.view(3, 2), (X_SEEN, [3, 2])),
        ("aten::reshape", lambda: X.reshape(-1), (X_SEEN, [-1])),
        ("aten::permute", lambda: X.permute(1, 0), (X_SEEN, [1, 0])),
        ("aten::sum", lambda: X.sum((0, 1)), (X_SEEN, [0, 1], False, None)),
        ("aten::empty", lambda: torch.empty(0), ([0], None, None)),
        ("aten::empty", lambda: torch.empty([]), ([], None, None)),
        (
            "aten::upsample_nearest2d",
            lambda: torch.nn.functional.interpolate(X[None, None], scale_factor=2.0),
            (TorchTensor((1, 1, 2, 3), "float32", "cpu"), None, [2.0, 2.0]),
        ),
    ],
)
def test_lists_of_inputs(name: str, call: Callable[[], object], inputs: Any) -> None:
    assert _values(name, call)[0][: len(inputs)] == inputs


def test_an_index_list_has_none_for_a_whole_dimension() -> None:
    index = torch.tensor([0, 1])
    inputs, _ = _values("aten::index", lambda: X[:, index])
    assert inputs == (X_SEEN, [None, TorchTensor((2,), "int64", "cpu")])


@pytest.mark.parametrize("count", [2, 12], ids=["short", "long"])
def test_texts(count: int) -> None:
    """A std::string stores up to 15 characters inside itself, longer ones elsewhere."""
    letters = "abcdefghijklmnop"[: count + 1]
    equation = ",".join(map("".join, pairwise(letters))) + f"->{letters[0]}{letters[-1]}"
    square = torch.ones(2, 2)
    inputs, _ = _values("aten::einsum", lambda: torch.einsum(equation, *[square] * count))
    # Then comes the order in which to multiply, if the package opt_einsum is installed.
    assert inputs[:2] == (equation, [TorchTensor((2, 2), "float32", "cpu")] * count)


def test_an_optional_text() -> None:
    inputs, _ = _values("aten::div", lambda: torch.div(X, X, rounding_mode="floor"))
    assert inputs == (X_SEEN, X_SEEN, "floor")


@pytest.mark.parametrize(
    ("name", "call", "piece"),
    [
        ("aten::split", lambda: X.split(1), (1, 3)),
        ("aten::unbind", lambda: X.unbind(), (3,)),
        ("aten::chunk", lambda: X.chunk(2), (1, 3)),
    ],
)
def test_a_list_of_outputs_is_one_output(
    name: str, call: Callable[[], object], piece: tuple[int, ...]
) -> None:
    assert _values(name, call)[1] == ([TorchTensor(piece, "float32", "cpu")] * 2,)


def test_several_outputs_are_several() -> None:
    _, outputs = _values("aten::max", lambda: X.max(0))
    assert outputs == (TorchTensor((3,), "float32", "cpu"), TorchTensor((3,), "int64", "cpu"))


def test_a_long_list_shows_its_first_items_and_its_length() -> None:
    (tensors, dim), _ = _values("aten::cat", lambda: torch.cat([X] * 1000))
    assert tensors == [X_SEEN] * 64
    assert isinstance(tensors, ListValue)
    assert (tensors.length, dim) == (1000, 0)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
def test_lists_of_lists() -> None:
    def count(rows: list[list[int]], words: list[str], on: list[bool]) -> int:
        return len(rows) + len(words) + len(on)

    scripted: Any = torch.jit.script(count)
    rows, words, on = [[1, 2], [], [3]], ["a", "a word of more than 15 characters"], [True, False]
    inputs, _ = _values("count", lambda: scripted(rows, words, on))
    assert inputs[-3:] == (rows, words, on)
    assert [item.length for item in inputs[-3]] == [2, 0, 1]


def test_unread_values_are_opaque() -> None:
    inputs, _ = _values("aten::empty", lambda: torch.empty(1, device="cpu"))
    assert isinstance(inputs[3], TorchOther)
    inputs, _ = _values("aten::add", lambda: torch.add(X, 1j))
    assert all(isinstance(value, (TorchTensor, TorchOther, int)) for value in inputs)
