"""A model is run by a C program that knows the installed headers and libraries alone."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from opscope import _tensor
from opscope._tensor import write_archive
from opscope.cli._group import main
from tests.model_runs import TIMEOUT_S, Run, c_program, c_runner

FORWARD = """graph(%x : Tensor):
  %w : Tensor = prim::GetAttr[name="fc.weight"]()
  %t : Tensor = prim::GetAttr[name="fc.turned"]()
  %y : Tensor = prim::CallFunction[name="fc.forward"](%x, %w)
  %z : Tensor = core::add(%y, %t)
  %n : int = py::numel(%z) # net.py:3:4
  %zero : int = prim::Constant[value=0]()
  %rest : int = py::mod(%n, %zero) # net.py:4:4
  return (%z)
"""
LINEAR = """graph(%x : Tensor, %w : Tensor):
  %y : Tensor = core::matmul(%x, %w)
  return (%y)
"""


KINDS = ("matmul", "add")


def described(**changes: Any) -> dict[str, Any]:
    sizes = {"storage": 0, "dtype": "float32", "sizes": [2, 2], "strides": [2, 1], "offset": 0}
    return {**sizes, "requires_grad": True, **changes}


def contents(forward: str) -> dict[str, Any]:
    """The entries of a model; what is no bytes is JSON."""
    weights = _tensor.tensor([1.0, 2.0, 3.0, 4.0])
    return {
        "version": b"1\n",
        "byteorder": b"little",
        "graph/forward.ir": forward.encode(),
        "graph/fc.forward.ir": LINEAR.encode(),
        "tensors/0": bytes(memoryview(_tensor.as_bytes(weights))),
        "extra/labels.txt": b"cat dog",
        "model.json": {
            "model": {
                "entry": "forward",
                "id": "net-1",
                "functions": ["forward", "fc.forward"],
                "attributes": {"fc.weight": 0, "fc.turned": 1},
                "parameters": ["fc.weight"],
            },
            "tensors": [described(), described(strides=[1, 2])],
        },
    }


def write(path: Path, entries: dict[str, Any]) -> Path:
    as_bytes = [
        (name, content if isinstance(content, bytes) else json.dumps(content).encode())
        for name, content in entries.items()
    ]
    write_archive(path, "archive", as_bytes)
    return path


@pytest.fixture(scope="module")
def run_model(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return c_runner(tmp_path_factory.mktemp("run_model"))


def works() -> str:
    """The graph without the nodes that fail."""
    lines = FORWARD.splitlines(keepends=True)
    return "".join(line for line in lines if "py::" not in line and "zero" not in line)


def test_a_c_program_runs_a_model(tmp_path: Path, run_model: Run) -> None:
    done = run_model(write(tmp_path / "net.pt", contents(works())), 1, 2, numbers="1 1")
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "id net-1",
        "takes x : Tensor",
        "returns z : Tensor",
        "5 9 6 10",
    ]


def test_top_shows_the_operators_of_a_c_process_by_model(tmp_path: Path) -> None:
    paths = []
    for name in ("first", "second"):
        entries = contents(works())
        entries["model.json"]["model"]["id"] = name
        paths.append(str(write(tmp_path / f"{name}.pt", entries)))
    program, segments = c_program(tmp_path, "record_model"), tmp_path / "segments"
    with subprocess.Popen(
        [program, segments, *paths], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdin and running.stdout
        assert running.stdout.readline() == "ready\n"
        loaded = Path(f"/proc/{running.pid}/maps").read_text()
        options = ("top", "--by", "labels", "--directory", str(segments))
        table = CliRunner(env={"COLUMNS": "100"}).invoke(main, [*options, "--once"]).output
        rows = json.loads(CliRunner().invoke(main, [*options, "--json"]).output)["operators"]
        running.stdin.close()
        assert running.wait(TIMEOUT_S) == 0
    assert "libopscope_tensor" in loaded and "libpython" not in loaded
    seen = {(row["labels"]["model_id"], row["operator"]): row["samples"] for row in rows}
    both = {(model, f"core::{name}"): 10 for model in ("first", "second") for name in KINDS}
    assert seen == both
    lines = [line.split()[:2] for line in table.splitlines() if "model_id=" in line]
    assert sorted(lines) == sorted([f"model_id={model}", name] for model, name in both)


def test_a_failure_names_its_place(tmp_path: Path, run_model: Run) -> None:
    done = run_model(write(tmp_path / "net.pt", contents(FORWARD)), 1, 2, numbers="1 1")
    assert done.returncode == 1
    assert done.stderr == "integer modulo by zero (net.py:4:4)\n"


def changed(change: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    entries = contents(works())
    change(entries)
    return entries


def model(key: str, value: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda entries: entries["model.json"]["model"].update({key: value})


def tensor(**changes: Any) -> Callable[[dict[str, Any]], Any]:
    return lambda entries: entries["model.json"]["tensors"].__setitem__(0, described(**changes))


WRONG: list[tuple[Callable[[dict[str, Any]], Any], str]] = [
    (lambda entries: entries.pop("version"), 'entry "version": there is no such entry'),
    (lambda entries: entries.update(version=b"2\n"), 'entry "version": it is not "1"'),
    (lambda entries: entries.update(byteorder=b"big"), 'entry "byteorder": it is not "little"'),
    (lambda entries: entries.pop("model.json"), 'entry "model.json": there is no such entry'),
    (lambda entries: entries.update({"model.json": b"{"}), 'entry "model.json": '),
    (lambda entries: entries.update({"model.json": b"[]"}), '"model" is missing'),
    (lambda entries: entries.pop("graph/fc.forward.ir"), "graph/fc.forward.ir"),
    (
        lambda entries: entries.update({"graph/forward.ir": b"graph(\n"}),
        'entry "graph/forward.ir": line 2',
    ),
    (lambda entries: entries.pop("tensors/0"), 'entry "tensors/0": there is no such entry'),
    (model("entry", "back"), 'has no function "back"'),
    (model("entry", 1), '"entry" is integer, not text'),
    (model("id", None), '"id" is none, not text'),
    (model("functions", ["forward", "forward"]), 'the function "forward" is listed twice'),
    (model("functions", ["forward"]), 'the model has no function "fc.forward"'),
    (model("functions", ["forward", 3]), "a name is integer"),
    (model("functions", ["forward\0"]), "a name is text"),
    (model("attributes", {}), 'the model has no attribute "fc.weight"'),
    (model("attributes", {"fc.weight": 7}), '"fc.weight" is no tensor\'s number'),
    (tensor(storage=-1), "tensor 0: its storage is out of range"),
    (tensor(storage=1 << 62), "tensor 0: its storage is out of range"),
    (tensor(dtype="float8"), "tensor 0: an unknown dtype"),
    (tensor(sizes=[3, 2]), "tensor 0: "),
    (tensor(sizes=[1 << 40, 1 << 40]), "tensor 0: "),
    (tensor(offset=-1), "tensor 0: "),
    (tensor(offset=1), "tensor 0: "),
    (tensor(strides=[2]), "sizes and strides"),
    (tensor(sizes=[1] * 17, strides=[1] * 17), "sizes and strides"),
    (tensor(sizes=["2", 2]), "sizes and strides"),
]


@pytest.mark.parametrize(("change", "reason"), WRONG, ids=[reason for _, reason in WRONG])
def test_a_wrong_archive_is_refused_with_the_reason(
    change: Callable[[dict[str, Any]], Any],
    reason: str,
    tmp_path: Path,
    run_model: Run,
) -> None:
    path = write(tmp_path / "net.pt", changed(change))
    done = run_model(path, 1, 2, numbers="1 1")
    assert done.returncode == 1
    assert done.stdout == ""
    assert reason in done.stderr
    assert done.stderr.startswith(str(path)[:100])


def test_a_call_of_itself_is_refused(tmp_path: Path, run_model: Run) -> None:
    entries = contents(works())
    entries["graph/fc.forward.ir"] = (
        b"graph(%x : Tensor, %w : Tensor):\n"
        b'  %y : Tensor = prim::CallFunction[name="fc.forward"](%x, %w)\n'
        b"  return (%y)\n"
    )
    done = run_model(write(tmp_path / "net.pt", entries), 1, 2, numbers="1 1")
    assert 'entry "graph/fc.forward.ir": ' in done.stderr
    assert 'the call of "fc.forward" leads back to itself' in done.stderr


@pytest.mark.parametrize("name", ["forward", "fc.forward"])
def test_an_operator_that_is_not_there_is_named_with_its_entry(
    name: str, tmp_path: Path, run_model: Run
) -> None:
    entries = contents(works())
    entry = f"graph/{name}.ir"
    known = b"core::add" if name == "forward" else b"core::matmul"
    entries[entry] = entries[entry].replace(known, b"core::nope")
    error = run_model(write(tmp_path / "net.pt", entries), 1, 2, numbers="1 1").stderr
    assert f'net.pt: entry "{entry}": ' in error
    assert "core::nope: no operator of this name is loaded" in error
