"""Compiled models in files."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import opscope
from opscope import tensor as ops
from opscope.tensor import jit, nn
from tests.tensor.jit.models import digits_model, digits_net


def test_a_loaded_model_does_what_the_saved_one_does(tmp_path: Path) -> None:
    model, x = digits_model(), ops.randn(3, 1, 8, 8)
    jit.save(model, tmp_path / "model.pt")
    loaded = jit.load(tmp_path / "model.pt")
    assert ops.equal(loaded(x), model(x))
    assert str(loaded.graph) == str(model.graph)
    assert loaded.name == "digits"
    assert list(loaded.state_dict()) == list(model.state_dict())
    names = [name for name, _ in loaded.named_parameters()]
    assert names == [name for name, _ in model.named_parameters()]
    assert all(parameter.requires_grad for parameter in loaded.parameters())


def test_a_loaded_model_is_trained(tmp_path: Path) -> None:
    net = nn.Linear(3, 2)
    jit.save(jit.trace(net, ops.ones(1, 3)), tmp_path / "model.pt")
    loaded = jit.load(tmp_path / "model.pt")
    loaded(ops.ones(4, 3)).sum().backward()
    gradient = dict(loaded.named_parameters())["bias"].grad
    assert gradient is not None
    assert gradient.tolist() == [4.0, 4.0]


RUNS = """
import sys
from opscope import tensor as ops
from opscope.tensor import jit
jit.load(sys.argv[1])(ops.load(sys.argv[2])).sum()
ops.save(jit.load(sys.argv[1])(ops.load(sys.argv[2])), sys.argv[3])
"""


def test_another_process_runs_the_model_without_its_code(tmp_path: Path) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            self.layers = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.LayerNorm(8))

        def forward(self, x: ops.Tensor) -> Any:
            return self.layers(x) + x

    net, x = Net(), ops.randn(5, 8)
    jit.trace(net, x).save(tmp_path / "model.pt")
    ops.save(x, tmp_path / "x.pt")
    paths = [str(tmp_path / name) for name in ("model.pt", "x.pt", "y.pt")]
    subprocess.run([sys.executable, "-c", RUNS, *paths], check=True)
    assert ops.allclose(ops.load(tmp_path / "y.pt"), net(x))


def test_the_entries_are_those_that_are_documented(tmp_path: Path) -> None:
    parts = digits_model().parts
    model = jit.CompiledModel(
        parts.functions,
        parts.attributes,
        parameters=parts.parameters,
        code={"net.py": "class Net: ..."},
    )
    jit.save(model, tmp_path / "model.pt", extra_files={"labels.txt": "0 1"}, model_id="digits-7")
    with zipfile.ZipFile(tmp_path / "model.pt") as file:
        names = [name.split("/", 1)[1] for name in file.namelist()]
        document = json.loads(file.read("archive/model.json"))
        graph = file.read("archive/graph/forward.ir").decode()
    assert {"version", "byteorder", "graph/forward.ir", "code/net.py"} < set(names)
    assert {"model.json", "tensors/0", "extra/labels.txt"} < set(names)
    assert graph == str(model.graph)
    assert document["model"]["id"] == "digits-7"
    assert document["model"]["functions"] == ["forward"]
    assert document["model"]["signature"] == [["input"]]
    assert jit.load(tmp_path / "model.pt").parts.code == {"net.py": "class Net: ..."}


def test_a_model_without_source_has_the_code_of_its_graphs(tmp_path: Path) -> None:
    model = digits_model()
    assert not model.parts.code
    jit.save(model, tmp_path / "model.pt")
    with zipfile.ZipFile(tmp_path / "model.pt") as file:
        assert file.read("archive/code/forward.py").decode() == model.code
    loaded = jit.load(tmp_path / "model.pt")
    assert loaded.parts.code == {"forward.py": model.code}
    jit.save(loaded, tmp_path / "again.pt")
    assert (tmp_path / "again.pt").read_bytes() == (tmp_path / "model.pt").read_bytes()


def test_defaults_of_parameters_are_kept(tmp_path: Path) -> None:
    text = (
        "graph(%x : Tensor, %scale : float):\n"
        "  %1 : Tensor = core::mul(%x, %scale)\n"
        "  return (%1)\n"
    )
    model = jit.CompiledModel({"forward": text}, {}, signature=[("x",), ("scale", float("inf"))])
    jit.save(model, tmp_path / "model.pt")
    loaded = jit.load(tmp_path / "model.pt")
    assert loaded(ops.ones(1)).item() == float("inf")
    assert loaded(ops.ones(1), scale=2.0).item() == 2.0


def test_the_id_is_of_the_content_unless_it_is_given(tmp_path: Path) -> None:
    def id_of(model: jit.CompiledModel, given: str | None = None) -> str:
        jit.save(model, tmp_path / "model.pt", model_id=given)
        return jit.load(tmp_path / "model.pt").model_id

    linear = jit.trace(nn.Linear(3, 2), ops.ones(1, 3), name="a")
    other = jit.trace(nn.Linear(3, 4), ops.ones(1, 3), name="a")
    assert id_of(linear) == id_of(linear)
    assert id_of(linear).startswith("a-")
    assert id_of(linear) != id_of(other)
    assert id_of(linear, "mine") == "mine"
    jit.save(linear, tmp_path / "model.pt", model_id="mine")
    assert id_of(jit.load(tmp_path / "model.pt")) == "mine"


def test_extra_files_come_from_the_caller_and_the_hook(tmp_path: Path) -> None:
    opscope.set_export_extra_files_hook(lambda: {"from_hook.txt": b"hook"})
    try:
        jit.save(digits_model(), tmp_path / "model.pt", extra_files={"notes.txt": "epoch 12"})
    finally:
        opscope.set_export_extra_files_hook(None)
    wanted: dict[str, bytes | None] = {"notes.txt": None, "from_hook.txt": None}
    jit.load(tmp_path / "model.pt", extra_files=wanted)
    assert wanted == {"notes.txt": b"epoch 12", "from_hook.txt": b"hook"}
    with pytest.raises(KeyError, match="has no extra file 'other'"):
        jit.load(tmp_path / "model.pt", extra_files={"other": None})


def test_attributes_that_share_memory_share_it_when_loaded(tmp_path: Path) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            self.register_buffer("table", ops.arange(6.0))
            self.register_buffer("tail", self.table[3:])

        table: ops.Tensor
        tail: ops.Tensor

        def forward(self, x: ops.Tensor) -> Any:
            self.table.add_(x)
            return self.tail * 1

    jit.save(jit.trace(Net(), ops.ones(1)), tmp_path / "model.pt")
    loaded = jit.load(tmp_path / "model.pt")
    assert loaded(ops.ones(1)).tolist() == [4.0, 5.0, 6.0]


READS = """
import sys
from opscope import tensor as ops
from opscope.tensor import jit
model = jit.load(sys.argv[1])
total = model(ops.ones(1)).item()
facts, is_inside = {}, False
for line in open("/proc/self/smaps"):
    first, *rest = line.split()
    if not first.endswith(":"):
        is_inside = rest[-1] == sys.argv[1]
    elif is_inside:
        facts[first] = rest[0]
print(total, facts["Private_Dirty:"], facts["Rss:"], flush=True)
sys.stdin.read()
"""


def test_processes_share_the_pages_of_a_model(tmp_path: Path) -> None:
    path = tmp_path / "large.pt"
    table = ops.ones(4 << 20)
    jit.save(jit.trace(lambda x: x + table.sum(), ops.ones(1)), path)
    readers = [
        subprocess.Popen(
            [sys.executable, "-c", READS, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    try:
        for reader in readers:
            assert reader.stdout is not None
            total, dirty_kib, resident_kib = map(float, reader.stdout.readline().split())
            assert total == (4 << 20) + 1
            assert dirty_kib == 0
            assert resident_kib >= 16 << 10
    finally:
        for reader in readers:
            reader.communicate()


def test_each_loader_names_the_other_one(tmp_path: Path) -> None:
    jit.save(digits_model(), tmp_path / "model.pt")
    ops.save(digits_net().state_dict(), tmp_path / "state.pt")
    with pytest.raises(ValueError, match=r"which opscope\.tensor\.jit\.load loads"):
        ops.load(tmp_path / "model.pt")
    with pytest.raises(ValueError, match=r"opscope\.tensor\.load may load the file"):
        jit.load(tmp_path / "state.pt")
