"""What passes believe of the core's operators holds for each of their samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opscope import tensor as ot
from opscope._tensor import Graph
from tests.tensor.samples import Sample, base_operators, call, outputs_of, samples_of

OPERATORS = base_operators()
# What they return is undefined.
UNDEFINED = {"core::empty", "core::empty_like"}


def is_removed(kind: str) -> bool:
    """Whether a node that nothing uses is removed: it has no effect then."""
    graph = Graph(f"graph(%x : Tensor):\n  %y : Tensor = {kind}(%x)\n  return (%x)\n")
    return graph.run_pass("dead_code") > 0


def is_fresh(kind: str) -> bool:
    """Whether two equal nodes are merged although what `kind` makes of each is returned."""
    graph = Graph(
        "graph(%x : Tensor):\n"
        "  %a : Tensor = core::neg(%x)\n"
        "  %b : Tensor = core::neg(%x)\n"
        f"  %c : Tensor = {kind}(%a)\n"
        f"  %d : Tensor = {kind}(%b)\n"
        "  return (%c, %d)\n"
    )
    return graph.run_pass("merge_equal") > 0


def run(sample: Sample) -> tuple[list[Any], list[Any]]:
    """(tensors given, tensors returned)."""
    given: list[Any] = []

    def convert(array: Any) -> Any:
        given.append(ot.from_numpy(array.copy()))
        return given[-1]

    args, kwargs = sample.mapped(convert)
    return given, [
        output
        for output in outputs_of(call(sample.operator, *args, **kwargs))
        if isinstance(output, ot.Tensor)
    ]


def bits(tensors: list[Any]) -> list[bytes]:
    return [np.ascontiguousarray(tensor.detach().numpy()).tobytes() for tensor in tensors]


@pytest.mark.parametrize("name", sorted(set(OPERATORS) - UNDEFINED))
def test_an_operator_without_effects_has_none(name: str) -> None:
    for sample in samples_of(name):
        given, made = run(sample)
        repeats = all(bits(run(sample)[1]) == bits(made) for _ in range(3))
        unchanged = bits(given) == [
            array.tobytes() for array in map(np.ascontiguousarray, sample.arrays())
        ]
        if not (repeats and unchanged):
            assert not is_removed(name)
        storages = {tensor._storage_data_ptr() for tensor in given if tensor.numel()}
        if any(tensor._storage_data_ptr() in storages for tensor in made if tensor.numel()):
            assert not is_fresh(name)


@pytest.mark.parametrize("name", [name for name in OPERATORS if ot.operators[name].is_view])
def test_a_view_is_not_fresh(name: str) -> None:
    assert not is_fresh(name)


@pytest.mark.parametrize("name", [name for name in ot.operators if name.endswith("_")])
def test_what_writes_in_place_is_not_removed(name: str) -> None:
    assert not is_removed(name)


def test_most_operators_are_known() -> None:
    assert is_removed("core::add")
    assert is_fresh("core::add")
    assert is_fresh("core::linear")
    assert not is_removed("mine::add")


@pytest.mark.parametrize("name", ["batch_norm", "dropout", "native_dropout", "normal", "uniform"])
def test_what_its_samples_do_not_show_is_known(name: str) -> None:
    """Running averages change in training alone, and drawn numbers differ."""
    assert f"core::{name}" in OPERATORS
    assert not is_removed(f"core::{name}")


def test_a_change_of_a_list_is_not_removed() -> None:
    for kind in ("append", "clear", "extend", "insert", "pop", "reverse", "setitem"):
        graph = Graph(f"graph(%l : List[int]):\n  %x : int = py::{kind}(%l)\n  return (%l)\n")
        assert graph.run_pass("dead_code") == 0
