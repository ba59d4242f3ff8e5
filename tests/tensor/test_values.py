"""The core's inputs and outputs in callbacks, including lists of tensors and numbers."""

from collections.abc import Callable
from typing import Any

import pytest

import opscope
import opscope.tensor as ot
from opscope.record.values import ListValue

X: ot.Tensor = ot.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])


def _plain(value: object) -> object:
    """Of a tensor, its shape."""
    if isinstance(value, ot.Tensor):
        return value.shape
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _values(name: str, call: Callable[[], object]) -> tuple[list[object], list[object]]:
    """Inputs and outputs of the one range of that name in the call."""
    inputs: list[list[object]] = []
    outputs: list[list[object]] = []

    def start(fn: opscope.RecordFunction) -> None:
        if fn.name == name:
            inputs.append([_plain(value) for value in fn.inputs])

    def end(fn: opscope.RecordFunction, _: object) -> None:
        if fn.name == name:
            outputs.append([_plain(value) for value in fn.outputs])

    handle = opscope.add_global_callback(start, end, needs_inputs=True, needs_outputs=True)
    call()
    opscope.remove_callback(handle)
    assert len(inputs) == len(outputs) == 1
    return inputs[0], outputs[0]


@pytest.mark.parametrize(
    ("name", "call", "inputs"),
    [
        ("core::cat", lambda: ot.cat([X, X], 1), [[(2, 3), (2, 3)], 1]),
        ("core::stack", lambda: ot.stack((X, X)), [[(2, 3), (2, 3)]]),
        ("core::reshape", lambda: X.reshape(3, 2), [(2, 3), [3, 2]]),
        ("core::permute", lambda: X.permute(1, 0), [(2, 3), [1, 0]]),
        ("core::sum", lambda: X.sum((0, 1)), [(2, 3), [0, 1]]),
        ("core::zeros", lambda: ot.zeros(()), [[]]),
    ],
)
def test_lists_of_inputs(name: str, call: Callable[[], object], inputs: Any) -> None:
    assert _values(name, call)[0][: len(inputs)] == inputs


@pytest.mark.parametrize(
    ("name", "call", "piece"),
    [("core::split", lambda: X.split(1), (1, 3)), ("core::unbind", lambda: X.unbind(), (3,))],
)
def test_a_list_of_outputs_is_one_output(
    name: str, call: Callable[[], object], piece: tuple[int, ...]
) -> None:
    assert _values(name, call)[1] == [[piece, piece]]


def test_several_outputs_are_several() -> None:
    assert _values("core::sort", lambda: X.sort())[1] == [(2, 3), (2, 3)]


def test_tensors_of_a_list_are_the_very_ones() -> None:
    seen: list[Any] = []
    handle = opscope.add_global_callback(
        lambda fn: seen.append(fn.inputs[0]) if fn.name == "core::cat" else None, needs_inputs=True
    )
    other = X + 1
    ot.cat([X, other])
    opscope.remove_callback(handle)
    assert seen[0][0] is X
    assert seen[0][1] is other


def test_a_long_list_shows_its_first_items_and_its_length() -> None:
    found: list[object] = []
    handle = opscope.add_global_callback(
        lambda fn: found.append(fn.inputs[0]) if fn.name == "core::cat" else None, needs_inputs=True
    )
    ot.cat([X] * 100)
    opscope.remove_callback(handle)
    assert isinstance(found[0], ListValue)
    assert (len(found[0]), found[0].length) == (64, 100)
