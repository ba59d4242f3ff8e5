"""`torch.compile`: the events that PyTorch reports without a profiler are recorded."""

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
from torch import nn

from opscope.record import recorder

from .torch_observed import Counts, Step, counts, profiled_calls, profiler

# Inductor imports what PyTorch itself has deprecated. PyTorch 2.6 warns of a setting as if the
# program had changed it.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated"),
    pytest.mark.filterwarnings("ignore:Skipping serialization of skipfiles_inline_module"),
]

COMPILER = os.environ.get("CXX", "g++")
ONLY_PROFILED = (
    *("Pregraph bytecode", "AOTDispatcher Runtime Wrapper"),
    # PyTorch 2.9 opens it always.
    *(() if torch.__version__.startswith("2.9.") else ("## Call CompiledFxGraph",)),
)
"""How ranges start that PyTorch opens for its own profiler alone."""

inductor = pytest.param(
    "inductor",
    marks=pytest.mark.skipif(
        shutil.which(COMPILER) is None, reason=f"inductor compiles for the CPU with {COMPILER}"
    ),
)


@pytest.fixture(autouse=True)
def compiled_anew(
    torch_attached: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    yield
    torch.compiler.reset()


def _compiled(backend: str, **options: Any) -> Step:
    """A forward and a backward of a compiled model, compiled already."""
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8))
    compiled = torch.compile(model, backend=backend, options=options or None)
    inputs = torch.randn(4, 32)

    def step() -> None:
        compiled(inputs).sum().backward()

    step()
    step()
    return step


def _recorded(step: Step, directory: Path) -> Counts:
    recorder.start(str(directory))
    step()
    recorder.stop()
    return counts(directory)


@cache
def _plain(backend: str) -> tuple[Counts, Counter[str]]:
    """A step as recorded, and as profiled. The tests of a backend look at the same one: compiling
    takes most of the time."""
    step = _compiled(backend)
    with TemporaryDirectory() as directory:
        found = _recorded(step, Path(directory) / "segments")
    with profiler() as profiled:
        step()
    return found, profiled_calls(profiled)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", inductor])
def test_all_events_are_seen_except_those_for_the_profiler_only(
    backend: str,
) -> None:
    found, calls = _plain(backend)
    expected = {op: calls[op] for op in calls if not op.startswith(ONLY_PROFILED)}
    assert found.calls == expected
    assert found.snapshot.health.dropped == 0


@pytest.mark.parametrize("backend", ["eager", "aot_eager", inductor])
def test_a_compiled_region_is_a_range_of_the_forward(backend: str) -> None:
    found, _ = _plain(backend)
    (region,) = [name for name in found.calls if name.startswith("Torch-Compiled Region")]
    assert found.calls[region] == found.calls["TorchDynamo Cache Lookup"] == 1
    assert found.phases[region] == {"forward"}
    # The matrix products, which inductor leaves to PyTorch, are the same operators as ever.
    assert (found.calls["aten::addmm"], found.calls["aten::mm"]) == (2, 3)
    assert found.phases["aten::mm"] == {"backward"}


@pytest.mark.parametrize("backend", ["aot_eager", inductor])
def test_its_backward_is_one_node(backend: str) -> None:
    found, _ = _plain(backend)
    assert found.calls["CompiledFunction"] == found.calls["CompiledFunctionBackward"] == 1
    assert found.phases["CompiledFunction"] == {"forward"}
    assert found.phases["CompiledFunctionBackward"] == {"backward"}
    assert "AddmmBackward0" not in found.calls


@pytest.mark.parametrize("backend", [inductor])
def test_fused_kernels_are_seen_where_they_are_compiled_so(backend: str, tmp_path: Path) -> None:
    plain, _ = _plain(backend)
    assert not [name for name in plain.calls if "cpp_fused" in name]
    torch.compiler.reset()
    step = _compiled(backend, **{"cpp.enable_kernel_profile": True})
    fused = [name for name in _recorded(step, tmp_path / "told").calls if "cpp_fused" in name]
    assert any("relu" in name for name in fused)
