"""PyTorch's ranges in callbacks: names, scopes, numbers and threads equal PyTorch's."""

import threading
from pathlib import Path
from typing import Any

import pytest
import torch

import opscope
from opscope import RecordScope
from opscope.bridges.torch.values import TorchTensor

from .torch_observed import observed_fork, profiler

pytestmark = pytest.mark.usefixtures("torch_attached")


def _seen(**options: Any) -> list[opscope.RecordFunction]:
    """The ranges that start from now on."""
    functions: list[opscope.RecordFunction] = []
    opscope.add_global_callback(functions.append, **options)
    return functions


def _train() -> None:
    x = torch.ones(3, requires_grad=True)
    torch.autograd.backward((x * 2).exp().sum())


def test_names_overloads_and_scopes() -> None:
    seen = _seen()
    with torch.profiler.record_function("mine"):
        torch.add(torch.ones(2), torch.ones(2))
    assert [(fn.name, fn.overload_name, fn.scope) for fn in seen] == [
        ("mine", "", RecordScope.USER_SCOPE),
        *[
            ("aten::ones", "", RecordScope.FUNCTION),
            ("aten::empty", "memory_format", RecordScope.FUNCTION),
            ("aten::fill_", "Scalar", RecordScope.FUNCTION),
        ]
        * 2,
        ("aten::add", "Tensor", RecordScope.FUNCTION),
    ]


def test_sequence_numbers_and_forward_threads_are_those_of_the_profiler() -> None:
    with profiler():
        pass  # the first of PyTorch 2.8 imports torch._dynamo, which calls operators
    seen = _seen()
    with profiler() as profiled:
        _train()
    results: Any = profiled.profiler
    events = results.kineto_results.events()
    # To what the engine does the profiler gives the numbers of the node within.
    engine = "autograd::engine"
    expected = sorted(
        (event.name(), event.sequence_nr(), event.fwd_thread_id() != 0)
        for event in events
        if not event.name().startswith(engine)
    )
    found = sorted(
        (fn.name, fn.sequence_nr, fn.sequence_nr >= 0 and fn.forward_thread_id != 0)
        for fn in seen
        if not fn.name.startswith(engine)
    )
    assert found == expected
    assert {number for _, number, _ in found} != {-1}


@pytest.mark.parametrize("threads_before", [0, 5000])
def test_a_backward_node_names_the_thread_of_its_forward(threads_before: int) -> None:
    for _ in range(threads_before):
        with_range = threading.Thread(target=torch.negative, args=(torch.ones(3),))
        with_range.start()
        with_range.join()
    opscope.add_global_callback(lambda fn: None)
    losses: list[torch.Tensor] = []

    def forward() -> None:
        losses.append((torch.ones(3, requires_grad=True) * 2).sum())

    thread = threading.Thread(target=forward)
    seen = _seen()
    thread.start()
    thread.join()
    torch.autograd.backward(losses[0])
    by_name = {fn.name: fn for fn in reversed(seen)}  # the first of each
    assert by_name["MulBackward0"].forward_thread_id == by_name["aten::mul"].thread_id
    assert by_name["MulBackward0"].thread_id != by_name["aten::mul"].thread_id
    assert by_name["MulBackward0"].sequence_nr == by_name["aten::mul"].sequence_nr


def test_inputs_and_outputs_are_described_to_callbacks_that_ask() -> None:
    values: list[tuple[str, str, tuple[object, ...]]] = []
    opscope.add_global_callback(
        lambda fn: values.append(("in", fn.name, fn.inputs)),
        lambda fn, _: values.append(("out", fn.name, fn.outputs)),
        needs_inputs=True,
        needs_outputs=True,
    )
    a = torch.ones(2, 3, dtype=torch.float64)
    b = torch.ones(3, dtype=torch.bfloat16)
    scalar = torch.tensor(3)
    values.clear()
    torch.add(a, b, alpha=2.5)
    torch.sum(a, 1)
    torch.dropout(a, 0.25, False)
    torch.cat([a, a])
    scalar.neg()
    tensor = TorchTensor((2, 3), "float64", "cpu")
    seen = {(kind, name): found for kind, name, found in reversed(values)}
    assert seen["in", "aten::add"] == (tensor, TorchTensor((3,), "bfloat16", "cpu"), 2.5)
    assert seen["out", "aten::add"] == (tensor,)
    assert seen["in", "aten::sum"] == (tensor, [1], False, None)
    assert seen["out", "aten::sum"] == (TorchTensor((2,), "float64", "cpu"),)
    assert seen["in", "aten::dropout"] == (tensor, 0.25, False)
    assert seen["in", "aten::cat"] == ([tensor, tensor], 0)
    assert seen["out", "aten::neg"] == (TorchTensor((), "int64", "cpu"),)


def test_a_program_that_asks_needs_no_further_import(tmp_path: Path) -> None:
    program = """
import opscope, torch
seen = {}
opscope.add_global_callback(lambda fn: seen.setdefault(fn.name, fn.inputs), needs_inputs=True)
torch.mm(torch.ones(2, 3), torch.ones(3, 4))
opscope.clear_callbacks()
print(*[(value.shape, value.dtype) for value in seen["aten::mm"]])
"""
    assert observed_fork(tmp_path, program) == "((2, 3), 'float32') ((3, 4), 'float32')\n"


def test_dtypes_have_pytorchs_names() -> None:
    values: list[object] = []
    opscope.add_global_callback(lambda fn: values.append(fn.inputs[0]), needs_inputs=True)
    names = (
        "uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128 bool bfloat16"
    )
    for name in [*names.split(), "uint16", "uint32", "uint64", "float8_e5m2", "float8_e4m3fn"]:
        tensor = torch.empty(1, dtype=getattr(torch, name))
        values.clear()
        tensor.view(1)
        assert values == [TorchTensor((1,), name, "cpu")]


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_an_undefined_tensor_and_a_nested_one_do_no_harm(capfd: pytest.CaptureFixture[str]) -> None:
    values: list[object] = []
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    opscope.add_global_callback(lambda fn: values.append(fn.inputs), needs_inputs=True)
    _train()
    torch.add(nested, nested)
    assert len(values) > 10
    assert capfd.readouterr().err == ""


def test_a_callback_that_does_not_ask_gets_no_values() -> None:
    values: list[object] = []
    opscope.add_global_callback(lambda fn: values.append(fn.inputs))
    torch.ones(3)
    assert set(values) == {()}


def test_scopes_choose() -> None:
    seen = _seen(scopes=[RecordScope.BACKWARD_FUNCTION])
    _train()
    assert {fn.scope for fn in seen} == {RecordScope.BACKWARD_FUNCTION}
    assert "MulBackward0" in {fn.name for fn in seen}


def test_ends_get_the_result_of_their_start() -> None:
    ended: list[tuple[str, object]] = []
    opscope.add_global_callback(
        lambda fn: f"of {fn.name}", lambda fn, context: ended.append((fn.name, context))
    )
    torch.ones(2)
    assert ended == [(name, f"of {name}") for name in ("aten::empty", "aten::fill_", "aten::ones")]


def test_operators_of_a_callback_are_not_seen() -> None:
    names: list[str] = []

    def start(fn: opscope.RecordFunction) -> None:
        names.append(fn.name)
        torch.zeros(3)

    opscope.add_global_callback(start)
    torch.empty(1)
    assert names == ["aten::empty"]


def test_a_callback_sees_torchs_operators_and_ours_in_turn() -> None:
    seen = _seen()
    with opscope.record_function("ours"):
        torch.empty(1)
        with opscope.record_function("inner"):
            torch.empty(1)
    assert [fn.name for fn in seen] == ["ours", "aten::empty", "inner", "aten::empty"]


def test_a_local_callback_sees_its_thread_only() -> None:
    names: list[str] = []
    handle = opscope.add_thread_local_callback(lambda fn: names.append(fn.name))
    thread = threading.Thread(target=torch.zeros, args=(1,))
    thread.start()
    thread.join()
    torch.empty(1)
    assert names == ["aten::empty"]
    opscope.remove_callback(handle)


def test_many_names_of_blocks_stay_distinct() -> None:
    seen = _seen(scopes=[RecordScope.USER_SCOPE])
    names = [f"a block of this program, number {number}" for number in range(6000)]
    for _ in range(2):
        for name in names:
            with torch.profiler.record_function(name):
                pass
    assert [fn.name for fn in seen] == names * 2


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
def test_a_torchscript_function_is_a_range() -> None:
    def double(x: torch.Tensor) -> torch.Tensor:
        return x + x

    scripted: Any = torch.jit.script(double)
    seen = _seen(scopes=[RecordScope.TORCHSCRIPT_FUNCTION])
    scripted(torch.ones(2))
    assert "double" in [fn.name for fn in seen]
