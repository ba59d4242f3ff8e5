"""With the setting `stamp`, safetensors and ONNX files that a program writes have the process's
extra files as texts, and load as before."""

from collections.abc import Callable
from pathlib import Path

import pytest

import opscope
from opscope.models import describe
from tests.bridges.torch_observed import observed, observed_fork

pytest.importorskip("torch")
pytest.importorskip("safetensors")
pytest.importorskip("onnx")

SAVE = """
{first}
import logging, sys
import numpy, onnx, safetensors.numpy, safetensors.torch, torch
from onnx import helper, TensorProto
logging.disable()
x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", [x], [y])
model = helper.make_model(graph)
helper.set_model_props(model, {{"kept": "mine"}})
def save():
    safetensors.torch.save_file({{"a": torch.arange(3.0)}}, "torch.safetensors")
    one = {{"a": torch.ones(1)}}
    safetensors.torch.save_file(one, "given.safetensors", {{"producer_info.json": "mine"}})
    safetensors.numpy.save_file({{"a": numpy.ones(1)}}, "numpy.safetensors")
    safetensors.numpy.save_file({{"a": numpy.ones(1)}}, "described.safetensors", {{"a": "b"}})
    with open("bytes.safetensors", "wb") as file:
        file.write(safetensors.torch.save({{"a": torch.ones(1)}}, metadata={{"b": "c"}}))
    onnx.save(model, "model.onnx")
    onnx.save_model(model.SerializeToString(), "bytes.onnx")
    with open("file.onnx", "wb") as file:
        onnx.save(model, file)
    assert [each.key for each in model.metadata_props] == ["kept"]
    assert safetensors.torch.load_file("torch.safetensors")["a"].tolist() == [0, 1, 2]
    onnx.checker.check_model(onnx.load("model.onnx"))
save()
{last}
"""
STAMP = {
    "OPSCOPE_PRODUCER": "host,service,opscope",
    "OTEL_SERVICE_NAME": "trainer",
    "OPSCOPE_STAMP": "safetensors,onnx",
}
PRODUCER = "producer_info.json"
WITHOUT = {
    "torch.safetensors": set(),
    "given.safetensors": {PRODUCER},
    "numpy.safetensors": set(),
    "described.safetensors": {"a"},
    "bytes.safetensors": {"b"},
    "model.onnx": {"kept"},
    "bytes.onnx": {"kept"},
    "file.onnx": {"kept"},
}
"""The names of the texts in each file, if nothing is added."""
STAMPED = {name: texts | {PRODUCER} for name, texts in WITHOUT.items()} | {
    "torch.safetensors": {"format", PRODUCER},
    "numpy.safetensors": set(),
}


def saved(
    directory: Path,
    first: str = "",
    last: str = "",
    run: Callable[..., str] = observed_fork,
    **settings: str,
) -> dict[str, set[str]]:
    """The names of the texts in each file that an observed program writes."""
    text = SAVE.format(first=f"import os; os.chdir({str(directory)!r}); {first}", last=last)
    run(directory, text, **settings)
    return texts(directory)


def texts(directory: Path) -> dict[str, set[str]]:
    return {name: set(describe(directory / name).extra) for name in WITHOUT}


def test_by_default_nothing_is_added(tmp_path: Path) -> None:
    assert saved(tmp_path, OPSCOPE_PRODUCER="host") == WITHOUT


@pytest.mark.parametrize("first", ["import numpy", "import onnx", "import safetensors.torch"])
def test_files_are_stamped_whatever_is_imported_first_until_the_program_detaches(
    tmp_path: Path, first: str
) -> None:
    last = r"""
os.mkdir("detached")
os.chdir("detached")
import opscope; opscope.detach()
opscope.set_export_extra_files_hook(lambda: {"a": "b"})
save()
"""
    assert saved(tmp_path, first, last, observed, **STAMP) == STAMPED
    assert texts(tmp_path / "detached") == WITHOUT
    producer = describe(tmp_path / "torch.safetensors").producer
    assert set(producer) == {"host", "service", "opscope_version"}
    assert (producer["service"], producer["opscope_version"]) == ("trainer", opscope.__version__)
    assert describe(tmp_path / "model.onnx").producer.items() >= producer.items()
    assert describe(tmp_path / "given.safetensors").extra[PRODUCER] == b"mine"


def test_one_format_alone(tmp_path: Path) -> None:
    found = saved(tmp_path, OPSCOPE_PRODUCER="host", OPSCOPE_STAMP="onnx")
    wanted = {name: (STAMPED if name.endswith("onnx") else WITHOUT)[name] for name in WITHOUT}
    assert found == wanted


def test_a_hook_without_texts_spoils_no_save(tmp_path: Path) -> None:
    raising = "import opscope; opscope.set_export_extra_files_hook(lambda: 1 / 0)"
    last = r"""
os.mkdir("second")
os.chdir("second")
opscope.set_export_extra_files_hook(lambda: {"binary": b"\xff"})
save()
"""
    assert saved(tmp_path, raising, last, OPSCOPE_STAMP="safetensors,onnx") == WITHOUT
    assert texts(tmp_path / "second") == WITHOUT


def test_a_stamped_function_is_pickled_by_its_name(tmp_path: Path) -> None:
    program = (
        "import pickle, numpy, onnx, safetensors\n"
        "for each in (safetensors.serialize_file, safetensors.serialize, onnx.save):\n"
        "    assert pickle.loads(pickle.dumps(each)) is each"
    )
    observed(tmp_path, program, **STAMP)
