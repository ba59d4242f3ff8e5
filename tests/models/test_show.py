"""`opscope model show` tells what a file holds, for files that the formats' own packages wrote."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import safetensors.torch
import torch
from click.testing import CliRunner

import opscope
from opscope import tensor as ops
from opscope.cli._group import main
from opscope.errors import ModelFileError
from opscope.models import describe
from opscope.models.description import TensorFacts
from opscope.models.protobuf import numbers
from opscope.tensor import jit, nn

PRODUCER = '{"host": "trainer-7", "user": "me"}'


def _model() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))


def _state(path: Path) -> None:
    ops.save(
        {"w": ops.ones(3, 4), "b": [ops.zeros(2).to(ops.bfloat16)]},
        path,
        extra_files={"producer_info.json": PRODUCER, "notes.txt": "hello"},
    )


def _torch_save(path: Path) -> None:
    torch.save({"w": torch.ones(3, 4), "b": [torch.zeros(2, dtype=torch.bfloat16)]}, path)


def _safetensors(path: Path) -> None:
    texts = {"producer_info.json": PRODUCER, "notes.txt": "hello"}
    tensors = {"w": torch.ones(3, 4), "b.0": torch.zeros(2, dtype=torch.bfloat16)}
    safetensors.torch.save_file(tensors, path, texts)


STATE = {TensorFacts("w", "float32", (3, 4)), TensorFacts("b.0", "bfloat16", (2,))}
LINEAR = {
    TensorFacts("0.weight", "float32", (3, 4)),
    TensorFacts("0.bias", "float32", (3,)),
    TensorFacts("2.weight", "float32", (2, 3)),
    TensorFacts("2.bias", "float32", (2,)),
}


@pytest.mark.parametrize(
    ("write", "format"),
    [
        (_state, "Opscope archive"),
        (_torch_save, "torch.save"),
        (_safetensors, "safetensors"),
    ],
)
def test_tensors_are_listed(tmp_path: Path, write: Callable[[Path], None], format: str) -> None:
    path = tmp_path / "file"
    write(path)
    found = describe(path)
    assert found.format == format
    assert found.bytes == path.stat().st_size
    assert set(found.tensors) == STATE
    assert len(found.tensors) == len(STATE)
    assert found.notes == []


def _compiled(path: Path) -> None:
    net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    jit.save(
        jit.trace(net, ops.ones(1, 4), name="net"),
        path,
        extra_files={"producer_info.json": PRODUCER, "notes.txt": "hello"},
        model_id="net-7",
    )


def test_a_compiled_model_has_functions_operators_and_parameters(tmp_path: Path) -> None:
    _compiled(tmp_path / "file")
    found = describe(tmp_path / "file")
    assert found.format == "Opscope archive"
    assert found.facts == {
        "version": "1",
        "model": "net",
        "id": "net-7",
        "parameters": "4 of 4 tensors",
    }
    assert found.functions == ["forward"]
    assert found.operators == {"core::linear": 2, "core::relu": 1}
    assert set(found.tensors) == LINEAR
    code, text = _run(str(tmp_path / "file"))
    assert code == 0
    assert text.split("functions\n")[1].split()[0] == "forward"


@pytest.mark.parametrize("write", [_state, _safetensors, _compiled])
def test_producer_and_extra_files_are_shown(tmp_path: Path, write: Callable[[Path], None]) -> None:
    write(tmp_path / "file")
    found = describe(tmp_path / "file")
    assert found.producer == {"host": "trainer-7", "user": "me"}
    assert found.extra["notes.txt"] == b"hello"


@pytest.mark.filterwarnings("ignore:`torch.jit")
@pytest.mark.parametrize("how", ["script", "trace"])
def test_a_torchscript_program_is_shown(tmp_path: Path, how: str) -> None:
    path = tmp_path / "file.pt"
    made: Any = (
        torch.jit.script(_model())
        if how == "script"
        else torch.jit.trace(_model(), torch.ones(1, 4))
    )
    torch.jit.save(made, path, _extra_files={"producer_info.json": PRODUCER})
    found = describe(path)
    assert found.format == "TorchScript"
    assert found.operators["aten::linear"] == 2
    assert found.operators["aten::relu"] == 1
    assert set(found.tensors) == LINEAR
    assert found.producer["host"] == "trainer-7"


def test_an_exported_program_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "file.pt2"
    program = torch.export.export(_model(), (torch.ones(1, 4),))
    torch.export.save(program, path, extra_files={"producer_info.json": PRODUCER})
    found = describe(path)
    assert found.format == "torch.export"
    assert found.operators == {"aten::linear": 2, "aten::relu": 1}
    assert set(found.tensors) == LINEAR
    assert found.facts["torch_version"] == torch.__version__
    assert found.producer["host"] == "trainer-7"


def _spec(kind: str, argument: str, name: str) -> Any:
    return {kind: {"arg": {"name": argument}, f"{kind}_name": name}}


OLDER_PROGRAM = {
    "graph_module": {
        "graph": {
            "nodes": [{"target": "torch.ops.aten.linear.default"}, {"target": "_operator.add"}],
            "tensor_values": {
                "p_w": {"dtype": 7, "sizes": [{"as_int": 2}, {"as_int": 4}]},
                "b_n": {"dtype": 5, "sizes": []},
                "c_c": {"dtype": 13, "sizes": [{"as_int": 3}]},
            },
        },
        "signature": {
            "input_specs": [
                _spec("parameter", "p_w", "0.weight"),
                _spec("buffer", "b_n", "1.count"),
                _spec("tensor_constant", "c_c", "lifted"),
                {"user_input": {"arg": {"as_tensor": {"name": "input"}}}},
            ]
        },
    },
    "torch_version": "2.7.1+cu126",
}


def _older_export(path: Path, program: Any) -> None:
    """As torch.export.save of PyTorch 2.4 to 2.7 lays it out."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("serialized_exported_program.json", json.dumps(program))
        archive.writestr("serialized_state_dict.pt", b"")
        archive.writestr("version", "8.7")
        archive.writestr("extra_files/producer_info.json", PRODUCER)


def _export_of_2_8(path: Path, program: Any) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("file/models/model.json", json.dumps(program))
        archive.writestr("file/data/weights/model.pt", b"")
        archive.writestr("file/extra/producer_info.json", PRODUCER)
        archive.writestr("file/archive_format", "pt2")
        archive.writestr("file/archive_version", "0")


@pytest.mark.parametrize(
    ("write", "fact"),
    [(_older_export, ("schema_version", "8.7")), (_export_of_2_8, ("archive_version", "0"))],
)
def test_a_program_that_an_older_pytorch_exported_is_shown(
    tmp_path: Path, write: Callable[[Path, Any], None], fact: tuple[str, str]
) -> None:
    write(tmp_path / "file", OLDER_PROGRAM)
    found = describe(tmp_path / "file")
    assert found.format == "torch.export"
    assert found.operators == {"aten::linear": 1}
    assert found.tensors == [
        TensorFacts("0.weight", "float32", (2, 4)),
        TensorFacts("1.count", "int64", ()),
        TensorFacts("lifted", "bfloat16", (3,)),
    ]
    assert found.facts == dict([fact], torch_version="2.7.1+cu126")
    assert found.producer["host"] == "trainer-7"


@pytest.mark.parametrize("sizes", [[{"as_int": float("inf")}], [{"as_int": "?"}], [{}], 3])
def test_an_older_program_with_other_sizes_is_refused(tmp_path: Path, sizes: object) -> None:
    program = json.loads(json.dumps(OLDER_PROGRAM))
    program["graph_module"]["graph"]["tensor_values"]["p_w"]["sizes"] = sizes
    _older_export(tmp_path / "file", program)
    with pytest.raises(ModelFileError, match="not laid out as"):
        describe(tmp_path / "file")


def _onnx(path: Path) -> None:
    helper = onnx.helper
    inner = helper.make_graph([helper.make_node("Add", ["a", "b"], ["q"])], "inner", [], [])
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"]),
        helper.make_node("Gelu", ["y"], ["z"], domain="com.microsoft"),
        helper.make_node("If", ["c"], ["q"], then_branch=inner, else_branch=inner),
    ]
    weights = [
        onnx.numpy_helper.from_array(np.ones((4, 300), np.float32), "w"),
        onnx.numpy_helper.from_array(np.array(1), "n"),
    ]
    model = helper.make_model(
        helper.make_graph(nodes, "outer", [], [], weights),
        producer_name="exporter",
        producer_version="3.1",
    )
    helper.set_model_props(model, {"producer_info.json": PRODUCER, "notes.txt": "hello"})
    onnx.save(model, path)


def test_an_onnx_model_is_shown(tmp_path: Path) -> None:
    _onnx(tmp_path / "file.onnx")
    found = describe(tmp_path / "file.onnx")
    assert found.format == "ONNX"
    assert found.operators == {
        "onnx::Add": 2,
        "onnx::MatMul": 1,
        "com.microsoft::Gelu": 1,
        "onnx::If": 1,
    }
    assert found.tensors == [
        TensorFacts("w", "float32", (4, 300)),
        TensorFacts("n", "int64", ()),
    ]
    assert found.producer == {
        "name": "exporter",
        "version": "3.1",
        "host": "trainer-7",
        "user": "me",
    }
    assert found.extra["notes.txt"] == b"hello"


def test_numbers_of_one_piece_are_read() -> None:
    assert list(numbers(memoryview(b"\x04\xac\x02\x00"))) == [4, 300, 0]
    with pytest.raises(ValueError, match="ends within a number"):
        list(numbers(memoryview(b"\x04\xac")))


def test_dtypes_that_our_tensors_lack_are_shown(tmp_path: Path) -> None:
    wanted = {"a": torch.int8, "b": torch.uint16, "c": torch.complex64, "d": torch.float8_e5m2}
    if torch.__version__ < "2.7":  # saves none of uint16
        del wanted["b"]
    saved = {name: torch.zeros(2, dtype=dtype) for name, dtype in wanted.items()}
    torch.save(saved, tmp_path / "file")
    found = describe(tmp_path / "file")
    assert {one.name: f"torch.{one.dtype}" for one in found.tensors} == {
        name: str(dtype) for name, dtype in wanted.items()
    }


def test_a_pickled_module_is_named_and_not_loaded(tmp_path: Path) -> None:
    torch.save(_model(), tmp_path / "file")
    (note,) = describe(tmp_path / "file").notes
    assert 'entry "data.pkl"' in note
    assert "torch.nn.modules.container.Sequential" in note


def _run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["model", "show", *arguments])
    return result.exit_code, result.output


def test_the_command_prints_all_of_it(tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    _state(Path(path))
    code, text = _run(path)
    assert code == 0
    for part in ("Opscope archive", "host trainer-7", "notes.txt (5 B)", "3x4", "2 tensors, 14 el"):
        assert part in text
    code, text = _run(path, "--json")
    assert json.loads(text)["tensors"][0] == {
        "name": "w",
        "dtype": "float32",
        "shape": [3, 4],
        "bytes": 48,
    }
    assert _run(path, "--extra", "notes.txt") == (0, "hello")
    code, text = _run(path, "--extra", "missing")
    assert code == 1
    assert "no extra file 'missing'; it has: notes.txt, producer_info.json" in text


def test_long_lists_are_cut_unless_all_is_asked_for(tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    ops.save({f"weight{n}": ops.ones(1) for n in range(50)}, path)
    assert "10 more tensors; --all shows them" in _run(path)[1]
    assert "weight49" in _run(path, "--all")[1]


def _damaged_zip(path: Path) -> None:
    _state(path)
    path.write_bytes(path.read_bytes()[:-1])


def _other_zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("word/document.xml", "")


def _cut_safetensors(path: Path) -> None:
    _safetensors(path)
    path.write_bytes(path.read_bytes()[:50])


def _cut_onnx(path: Path) -> None:
    _onnx(path)
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize(
    ("write", "reason"),
    [
        (_damaged_zip, "not a zip file, or truncated"),
        (_other_zip, "not a model's file of a known format"),
        (_cut_safetensors, "longer than the file"),
        (_cut_onnx, "a field is longer than its message"),
        (lambda path: path.write_bytes(b""), "not a model's file of a known format"),
        (lambda path: path.mkdir(), "Is a directory"),
        (lambda path: None, "No such file"),
    ],
)
def test_a_bad_file_is_one_line_with_its_path(
    tmp_path: Path, write: Callable[[Path], None], reason: str
) -> None:
    write(tmp_path / "file")
    code, text = _run(str(tmp_path / "file"))
    assert code == 1
    assert text.startswith("Error: ")
    assert text.count("\n") == 1
    assert str(tmp_path / "file") in text
    assert reason in text


def test_every_truncation_is_described_or_refused(tmp_path: Path) -> None:
    for write in (_state, _compiled, _torch_save, _safetensors, _onnx):
        write(tmp_path / "whole")
        whole = (tmp_path / "whole").read_bytes()
        for length in range(0, len(whole), 7):
            (tmp_path / "cut").write_bytes(whole[:length])
            assert _outcome(tmp_path / "cut")


def _outcome(path: Path) -> bool:
    try:
        describe(path)
    except opscope.OpscopeError as error:
        return str(path) in str(error)
    return True
