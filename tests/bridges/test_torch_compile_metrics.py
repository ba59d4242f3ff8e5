"""Metrics of `torch.compile`: compilations with their reasons, graph breaks, caches."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from opscope.bridges.torch.compile import reason_of
from opscope.host.host import Host
from opscope.segments import directories

from .torch_observed import TIMEOUT_S

_BEFORE = """
import json, sys
import opscope
opscope.attach()
import torch
assert "torch._dynamo" not in sys.modules  # nobody has asked for it

def counted():
    from opscope.record import metric
    return {
        f"{name.rpartition('.')[2]} {label}": metric.Metric(name, label).read()
        for name, label in metric._made
        if name.startswith("opscope.torch.compile.") and not name.endswith("time")
    }

def function(x):
    return x.sin() + 1
"""

COMPILER = os.environ.get("CXX", "g++")


def _run(program: str, directory: Path) -> Any:
    bare = {key: value for key, value in os.environ.items() if not key.startswith("OPSCOPE")}
    done = subprocess.run(
        [sys.executable, "-c", _BEFORE + program],
        env={
            **bare,
            "HOME": str(directory),
            "OPSCOPE_DIR": str(directory / "segments"),
            "TORCHINDUCTOR_CACHE_DIR": str(directory / "inductor"),
            # PyTorch 2.4 uses its caches only if asked to.
            "TORCHINDUCTOR_FX_GRAPH_CACHE": "1",
            "TORCHINDUCTOR_AUTOGRAD_CACHE": "1",
        },
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


Counted = dict[str, dict[str, int]]


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Counted:
    """What each case of one program adds to the counters: torch.compile takes seconds to import."""
    program = """
def added_by(work):
    torch._dynamo.reset()
    before = counted()
    work()
    return {name: count - before.get(name, 0) for name, count in counted().items()
            if count > before.get(name, 0)}

def other(x):
    return x.tan() + 1

def compile_three_times(function, backend):
    compiled = torch.compile(function, backend=backend)
    for x in torch.ones(3), torch.ones(3), torch.ones(4), torch.ones(5), torch.ones(4).double():
        compiled(x)

@torch.compile(backend="eager")
def broken(x):
    y = x.sin() + 1
    torch._dynamo.graph_break()
    return y.cos()

def break_twice():
    broken(torch.ones(3)), broken(torch.ones(3))

def failing(graph, inputs):
    raise KeyError("of the backend")

def third(x):
    return x.cos() + 1

def fail():
    try:
        torch.compile(third, backend=failing)(torch.ones(3))
    except Exception as error:
        assert "of the backend" in str(error), error
    else:
        raise AssertionError("no error")

def reset_amid():
    from torch._dynamo import callback
    calls = []
    torch.compile(function, backend="eager")(torch.ones(3))
    callback.on_compile_end(calls.append)
    torch._dynamo.reset()
    torch.compile(function, backend="eager")(torch.ones(3))
    found["calls of the program's own"] = len(calls)

def detach_and_reset():
    from torch._dynamo import callback
    opscope.detach()
    torch._dynamo.reset()
    torch.compile(function, backend="eager")(torch.ones(3))
    handler = callback.callback_handler
    found["callbacks left"] = len(handler.start_callbacks) + len(handler.end_callbacks)

found = {}
print(json.dumps({
    "eager": added_by(lambda: compile_three_times(function, "eager")),
    "aot_eager": added_by(lambda: compile_three_times(other, "aot_eager")),
    "graph break": added_by(break_twice),
    "failure": added_by(fail),
    "reset": added_by(reset_amid),
    "detached": added_by(detach_and_reset),
    "found": found,
}))
"""
    counted: Counted = _run(program, tmp_path_factory.mktemp("counted"))
    return counted


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_each_compilation_counts_once_by_its_reason(backend: str, counted: Counted) -> None:
    found = counted[backend]
    compilations = {name: count for name, count in found.items() if name.startswith("compilations")}
    assert compilations == {
        "compilations first": 1,
        "compilations size": 1,  # from then on, any size will do
        "compilations dtype": 1,
    }


def test_a_graph_break_has_pytorchs_reason(counted: Counted) -> None:
    found = counted["graph break"]
    breaks = {name: count for name, count in found.items() if name.startswith("graph_breaks")}
    (name,) = breaks
    assert "graph_break" in name
    assert "\n" not in name
    assert breaks[name] == 1
    assert found["compilations first"] == 2


def test_a_reset_of_pytorch_ends_no_counting_and_counts_nothing_twice(counted: Counted) -> None:
    assert counted["reset"] == {"compilations first": 2}
    assert counted["detached"] == {}
    # A reset removes the program's.
    assert counted["found"] == {"calls of the program's own": 0, "callbacks left": 0}


def test_a_compilation_that_fails_raises_as_before(counted: Counted) -> None:
    assert counted["failure"] == {"compilations first": 1}


def test_pytorch_converts_as_many_frames_as_before(tmp_path: Path) -> None:
    """A backward compiled within a frame calls the callbacks while Dynamo converts frames."""
    attached, bare = (
        _run(
            f"""
{prepare}
import torch._dynamo
model = torch.nn.Linear(3, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

@torch.compile(backend="aot_eager")
def step(x):
    optimizer.zero_grad()
    loss = model(x).pow(2).sum()
    loss.backward()
    optimizer.step()

for _ in range(3):
    step(torch.ones(2, 3))
assert bool(counted()) is {bool(not prepare)}, counted()
counters = torch._dynamo.utils.counters
print(json.dumps([counters["frames"], counters["stats"]]))
""",
            tmp_path,
        )
        for prepare in ("", "opscope.detach()")
    )
    assert attached == bare


@pytest.mark.slow
@pytest.mark.skipif(shutil.which(COMPILER) is None, reason="inductor needs a compiler")
def test_caches_of_inductor_and_what_the_agent_reads(tmp_path: Path) -> None:
    _run(
        """
x = torch.ones(3)
torch.compile(function)(x)
torch._dynamo.reset()
torch.compile(function)(x)
print("[]")
""",
        tmp_path,
    )
    snapshot = Host(directories.exactly([str(tmp_path / "segments")]), consume=False).collect()
    compiled = snapshot.compiled
    ((service, reason),) = compiled.compilations
    assert (reason, compiled.compilations[service, reason]) == ("first", 2)
    assert 0 < compiled.time_s[service, "first"] < 400
    lookups = {outcome: count for (_, outcome), count in compiled.cache.items()}
    # PyTorch 2.4 has no cache for AOTAutograd: its second compilation finds Inductor's graph.
    assert lookups["fxgraph miss"] == lookups.get("autograd miss", 1) == 1
    assert lookups.get("autograd hit", lookups.get("fxgraph hit")) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("0/0: tensor 'x' size mismatch at index 0. expected 3, actual 4", "size"),
        ("0/1: tensor 'x' dtype mismatch. expected Float, actual Double", "dtype"),
        ("0/0: tensor 'x' requires_grad mismatch. expected requires_grad=0", "requires_grad"),
        ("0/0: tensor 'x' device index mismatch", "device"),
        ("0/0: GLOBAL_STATE changed: grad_mode", "global state"),
        ("0/0: ___check_type_id(x, 94)", "type"),
        ("0/0: len(x) == 3", "length"),
        ("0/0: n == 3", "value"),
        ("Unable to find recompilation reasons", "unknown"),
    ],
)
def test_the_guard_that_failed_becomes_few_words(text: str, reason: str) -> None:
    assert reason_of(text) == reason
