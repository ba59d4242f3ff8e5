"""PyTorch on a GPU: counts, phases, labels and values are as on the CPU, and Opscope neither starts
CUDA nor waits for it.

`make test-cuda` runs these; CI has no GPU.
"""

import json
import re
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity

import opscope
from opscope._native import lib
from opscope.bridges.torch.values import TorchTensor
from opscope.record import recorder

from .torch_observed import Step, counts, observed, profiled_calls, profiler

pytestmark = [
    pytest.mark.external,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no GPU"),
    pytest.mark.usefixtures("torch_attached"),
]

DEVICE = "cuda"
CUDAS_OWN = re.compile(r"cu(da)?[A-Z]")
"""How CUDA's functions are named: cudaLaunchKernel, cuLaunchKernel."""


def _train_step() -> Step:
    """Forward, backward and a step of Adam with mixed precision, of a small convolutional net."""
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(288, 5)
    ).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters())
    scaler = torch.amp.GradScaler(DEVICE)
    images = torch.randn(4, 3, 8, 8, pin_memory=True)
    targets = torch.randint(0, 5, (4,), device=DEVICE)

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = nn.functional.cross_entropy(model(images.to(DEVICE, non_blocking=True)), targets)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    return step


def _transformer_step() -> Step:
    block = nn.TransformerEncoderLayer(16, 2, dim_feedforward=32, batch_first=True).to(DEVICE)
    inputs = torch.randn(2, 4, 16, device=DEVICE)

    def step() -> None:
        block(inputs).square().mean().backward()

    return step


@pytest.mark.parametrize("make_step", [_train_step, _transformer_step])
def test_calls_are_those_of_the_profiler_exactly(make_step: Any, tmp_path: Path) -> None:
    step: Step = make_step()
    step()
    with profiler() as profiled:
        recorder.start(str(tmp_path))
        for _ in range(20):
            step()
        recorder.stop()
    found = counts(tmp_path)
    # Of a build for CUDA, the profiler's events of the CPU have those of CUDA's functions too.
    calls = profiled_calls(profiled)
    assert found.calls == {name: calls[name] for name in calls if not CUDAS_OWN.match(name)}
    assert len(found.calls) > 20
    assert found.snapshot.health.dropped == 0


def test_a_profiler_of_the_device_changes_nothing(tmp_path: Path) -> None:
    step = _train_step()
    for _ in range(3):  # the scaler's first steps differ
        step()
    recorder.start(str(tmp_path / "alone"))
    step()
    recorder.stop()
    with profiler(ProfilerActivity.CUDA) as profiled:
        recorder.start(str(tmp_path / "both"))
        step()
        recorder.stop()
    alone, both = counts(tmp_path / "alone").calls, counts(tmp_path / "both").calls
    assert both == alone
    kernels = [event for event in profiled.events() or () if "CUDA" in str(event.device_type)]
    assert kernels, "the profiler still sees what runs on the device"


def test_backward_runs_on_a_thread_of_the_device_with_its_phase_and_labels(tmp_path: Path) -> None:
    seen: Counter[tuple[str | None, bool]] = Counter()
    here = threading.get_ident()

    def start(fn: opscope.RecordFunction) -> None:
        if fn.name == "AddmmBackward0":
            seen[fn.debug_info.get("model_id"), threading.get_ident() == here] += 1

    model = nn.Linear(4, 4).to(DEVICE)
    recorder.start(str(tmp_path))
    handle = opscope.add_global_callback(start)
    for label in ("a", "b"):
        with opscope.debug_info(model_id=label):
            model(torch.ones(1, 4, device=DEVICE)).sum().backward()
    opscope.remove_callback(handle)
    recorder.stop()
    assert seen == {("a", False): 1, ("b", False): 1}
    found = counts(tmp_path)
    assert found.phases["aten::addmm"] == {"forward"}
    assert found.phases["AddmmBackward0"] == found.phases["aten::mm"] == {"backward"}
    labels = {(key.op, *key.labels) for key in found.snapshot.keys}
    assert {("aten::mm", ("model_id", "a")), ("aten::mm", ("model_id", "b"))} <= labels


@pytest.mark.filterwarnings("ignore:Synchronization debug mode is a prototype")
def test_values_name_the_device_without_waiting_for_it() -> None:
    a, b = torch.ones(2, 3, device=DEVICE), torch.ones(3, dtype=torch.bfloat16, device=DEVICE)
    values: list[tuple[str, tuple[object, ...]]] = []
    try:
        torch.cuda.set_sync_debug_mode("error")
        handle = opscope.add_global_callback(
            lambda fn: values.append((fn.name, fn.inputs)),
            lambda fn, _: values.append((f"{fn.name} out", fn.outputs)),
            needs_inputs=True,
            needs_outputs=True,
        )
        torch.add(a, b)
        a.to("cpu", non_blocking=True)
        opscope.remove_callback(handle)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    seen = dict(reversed(values))
    assert seen["aten::add"][:2] == (
        TorchTensor((2, 3), "float32", DEVICE),
        TorchTensor((3,), "bfloat16", DEVICE),
    )
    assert seen["aten::add out"] == (TorchTensor((2, 3), "float32", DEVICE),)
    assert seen["aten::_to_copy out"] == (TorchTensor((2, 3), "float32", "cpu"),)


@pytest.mark.parametrize("in_windows", [False, True])
def test_a_cuda_graph_is_captured_and_replayed(in_windows: bool, tmp_path: Path) -> None:
    """The operators are called at the capture; a replay calls none."""
    layer = nn.Linear(8, 8).to(DEVICE)
    inputs = torch.randn(4, 8, device=DEVICE)

    def work() -> torch.Tensor:
        return layer(inputs).relu().square().sum()

    with torch.no_grad():
        expected = work().item()
        if in_windows:
            recorder.start(str(tmp_path), window_ms=1.0, period_ms=1e6)
            lib.opscope_recorder_window_begin(3.0)
        else:
            recorder.start(str(tmp_path))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = work()
        for _ in range(10):
            graph.replay()
        if in_windows:
            lib.opscope_recorder_window_end()
        recorder.stop()
        torch.cuda.synchronize()
        assert result.item() == expected
    weight = 3 if in_windows else 1
    calls = counts(tmp_path).calls
    assert calls["aten::addmm"] == calls["aten::relu"] == weight


def test_cuda_starts_when_the_program_starts_it(tmp_path: Path) -> None:
    program = """
import torch
torch.ones(3).exp()
print(torch.cuda.is_initialized())
torch.ones(3, device="cuda").exp()
torch.cuda.synchronize()
print(torch.cuda.is_initialized())
"""
    assert observed(tmp_path, program) == "False\nTrue\n"
    found = counts(tmp_path / "segments")
    assert found.calls["aten::exp"] == 2
    (process,) = found.snapshot.processes
    assert process.notes["torch.device_type"] == "cuda"
    assert "torch.without" not in process.notes


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_a_compiled_program_runs(mode: str, tmp_path: Path) -> None:
    """The second mode captures CUDA graphs."""
    program = """
import os
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4)).cuda()
inputs = torch.randn(8, 16, device="cuda")
compiled = torch.compile(model, mode=os.environ["MODE"])
for _ in range(6):
    result = compiled(inputs)
    result.sum().backward()
    gradient = model[0].weight.grad.clone()
    model.zero_grad()
    close = torch.allclose(result, model(inputs), atol=1e-4)
    del result
model(inputs).sum().backward()
print(close, torch.allclose(gradient, model[0].weight.grad, atol=1e-4))
"""
    assert observed(tmp_path, program, MODE=mode) == "True True\n"
    found = counts(tmp_path / "segments")
    assert found.calls["Torch-Compiled Region: 0/0"] == 6, found.calls
    assert found.calls["CompiledFunctionBackward"] == 6, found.calls


def test_pinned_batches_of_workers_are_data(tmp_path: Path) -> None:
    program = """
import torch
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    data = TensorDataset(torch.arange(64.0).reshape(64, 1))
    total = torch.zeros(1, device="cuda")
    for (batch,) in DataLoader(data, batch_size=8, num_workers=2, pin_memory=True):
        total += batch.to("cuda", non_blocking=True).sum(0)
    print(total.item())
"""
    assert observed(tmp_path, program) == "2016.0\n"
    phases = counts(tmp_path / "segments").phases
    assert phases["aten::stack"] == {"data"}
    assert phases["aten::pin_memory"] == {"data"}


def test_collectives_of_nccl_are_comm(tmp_path: Path) -> None:
    program = """
import os
import torch
import torch.distributed as dist

os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
dist.init_process_group(
    "nccl", rank=0, world_size=1, store=dist.HashStore(), device_id=torch.device("cuda", 0)
)
total = torch.ones(8, device="cuda")
for _ in range(5):
    dist.all_reduce(total)
torch.cuda.synchronize()
print(total.sum().item())
dist.destroy_process_group()
"""
    assert observed(tmp_path, program) == "8.0\n"
    found = counts(tmp_path / "segments")
    assert found.calls["c10d::allreduce_"] == 5
    assert found.phases["c10d::allreduce_"] == {"comm"}
    assert found.phases["record_param_comms"] == {"comm"}


def test_marks_of_torch_cuda_nvtx_are_ranges(tmp_path: Path) -> None:
    program = """
import json
import torch

for _ in range(5):
    with torch.cuda.nvtx.range("marked"):
        torch.ones(3, device="cuda").exp()
print(json.dumps(torch.ones(3).tolist()))
"""
    assert json.loads(observed(tmp_path, program, OPSCOPE_MARKS="nvtx")) == [1.0, 1.0, 1.0]
    assert counts(tmp_path / "segments").calls["nvtx::marked"] == 5
