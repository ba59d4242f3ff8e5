"""Files of torch.save and of safetensors: what PyTorch and the package read, `load` gives too."""

import os
import re
import zipfile
from collections import Counter, OrderedDict
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from torch.utils import dlpack

import opscope
from opscope import tensor as ops
from opscope.models import describe
from opscope.tensor import nn
from opscope.tensor.archive import safetensors as ours

DTYPES = [
    torch.float32,
    torch.float64,
    torch.int32,
    torch.int64,
    torch.uint8,
    torch.bool,
    torch.bfloat16,
    torch.float16,
]


def _equal(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, torch.Tensor):
        as_torch = dlpack.from_dlpack(found.detach())
        return bool(
            as_torch.dtype == wanted.dtype
            and torch.equal(as_torch, wanted.detach())
            and found.requires_grad == wanted.requires_grad
            and isinstance(found, nn.Parameter) == isinstance(wanted, torch.nn.Parameter)
        )
    if isinstance(wanted, dict):
        return list(found) == list(wanted) and all(_equal(found[k], wanted[k]) for k in wanted)
    if isinstance(wanted, list | tuple):
        return len(found) == len(wanted) and all(map(_equal, found, wanted))
    return bool(found == wanted and (wanted is None or type(found) is type(wanted)))


def _loaded(obj: Any, directory: Path) -> Any:
    torch.save(obj, directory / "file.pt")
    return ops.load(directory / "file.pt")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_tensors_of_torch_come_back(tmp_path: Path, dtype: torch.dtype) -> None:
    wide = torch.arange(24).reshape(4, 6).to(dtype)
    saved = [wide, wide[1:3, ::2], wide.t(), wide[0, 0], torch.empty(0, 3, dtype=dtype)]
    found = _loaded(saved, tmp_path)
    assert _equal(found, saved)
    assert found[1]._storage_data_ptr() == found[0]._storage_data_ptr()


def test_a_training_state_comes_back(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        model(torch.randn(5, 4)).sum().backward()
        optimizer.step()
    saved = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}
    found = _loaded(saved, tmp_path)
    assert _equal(found, saved)
    assert isinstance(found["model"], OrderedDict)
    assert list(found["model"]._metadata) == list(model.state_dict()._metadata)  # type: ignore[attr-defined]


def test_plain_objects_of_torch_come_back(tmp_path: Path) -> None:
    saved = {
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "frozen": torch.nn.Parameter(torch.ones(2), requires_grad=False),
        "leaf": torch.ones(2, requires_grad=True),
        "bytes": b"\0\xff",
        "set": {1, 2},
        "counter": Counter("aab"),
        "complex": 1 + 2j,
        "nested": [(None, True, 2**40, -1.5, "é")],
    }
    assert _equal(_loaded(saved, tmp_path), saved)
    found = _loaded({"size": torch.Size([1, 2]), "device": torch.device("cpu")}, tmp_path)
    assert found == {"size": (1, 2), "device": "cpu"}


def test_a_write_does_not_reach_the_file(tmp_path: Path) -> None:
    found = _loaded(torch.zeros(5), tmp_path)
    found.fill_(1.0)
    assert torch.equal(torch.load(tmp_path / "file.pt"), torch.zeros(5))


class Evil:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, ("touch evil",)


@pytest.mark.parametrize(
    ("obj", "reason"),
    [
        (Evil(), "posix.system"),
        (torch.nn.Linear(1, 1), "torch.nn.modules.linear.Linear"),
        (torch.ones(2, dtype=torch.int8), 'entry "data/0": torch.CharStorage'),
        (torch.ones(2, dtype=torch.uint16), "torch.uint16 is a dtype that tensors here"),
    ],
    ids=["os.system", "module", "int8", "uint16"],
)
def test_what_cannot_be_loaded_is_named(
    tmp_path: Path, obj: Any, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"file\.pt") as raised:
        _loaded(obj, tmp_path)
    assert reason in str(raised.value)
    assert not (tmp_path / "evil").exists()


@pytest.mark.filterwarnings("ignore:`torch.jit")
def test_programs_and_old_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "file.pt"
    torch.jit.script(torch.nn.ReLU()).save(str(path))
    with pytest.raises(ValueError, match="a TorchScript program"):
        ops.load(path)
    torch.save(torch.ones(2), path, _use_new_zipfile_serialization=False)
    with pytest.raises(ValueError, match="not a zip file"):
        ops.load(path)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_safetensors_go_both_ways(tmp_path: Path, dtype: torch.dtype) -> None:
    theirs, mine = tmp_path / "theirs.safetensors", tmp_path / "mine.safetensors"
    saved = {"a": torch.arange(6).reshape(2, 3).to(dtype), "b": torch.ones(1, dtype=dtype)}
    safetensors.torch.save_file(saved, theirs)
    found = ops.load(theirs)
    assert set(found) == set(saved)
    assert all(_equal(found[name], saved[name]) for name in saved)
    ours.save(found, mine)
    again = safetensors.torch.load_file(mine)
    assert all(torch.equal(again[name], saved[name]) for name in saved)


def test_texts_and_the_hooks_files_are_in_safetensors(tmp_path: Path) -> None:
    path = tmp_path / "file.safetensors"
    opscope.set_export_extra_files_hook(lambda: {"job": "nightly", "raw": b"\xff", "mine": "hook"})
    try:
        ours.save({"a": ops.ones(2).t()}, path, {"mine": "own"})
    finally:
        opscope.set_export_extra_files_hook(None)
    wanted: dict[str, bytes | None] = {"job": None, "mine": None}
    ops.load(path, extra_files=wanted)
    assert wanted == {"job": b"nightly", "mine": b"own"}
    with pytest.raises(KeyError, match="no text 'raw'"):
        ops.load(path, extra_files={"raw": None})


def test_damaged_safetensors_are_refused_with_the_path(tmp_path: Path) -> None:
    path = tmp_path / "file.safetensors"
    ours.save({"a": ops.ones(2)}, path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(ValueError, match=r"file\.safetensors: "):
        ops.load(path)
    safetensors.torch.save_file({"a": torch.ones(2, dtype=torch.int8)}, path)
    with pytest.raises(ValueError, match='tensor "a": dtype I8 is not supported'):
        ops.load(path)


def _with_pickle(directory: Path, content: bytes) -> Path:
    """A file of torch.save whose pickle is this one."""
    path = directory / "file.pt"
    torch.save(torch.ones(2, dtype=torch.int64), path)
    with zipfile.ZipFile(path) as file:
        entries = {name: file.read(name) for name in file.namelist()}
    with zipfile.ZipFile(path, "w") as file:
        for name, old in entries.items():
            file.writestr(name, content if name.endswith("data.pkl") else old)
    return path


STORAGE = b"((X\x07\0\0\0storagectorch\nLongStorage\nX\x01\0\0\00X\x03\0\0\0cpuK\x02tQ"
HOSTILE = {
    "memory": b"\x80\x02cbuiltins\nbytearray\n\x8a\x06\0\0\0\0\0\x01\x85R.",
    "no argument": b"\x80\x02c_codecs\nencode\n)R.",
    "too few arguments": b"\x80\x02ctorch._utils\n_rebuild_parameter\n)R.",
    "integers with a gradient": b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n"
    + STORAGE
    + b"K\0K\x02\x85K\x01\x85\x88tR.",
    "too large": b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n"
    + STORAGE
    + b"K\0\x8a\x08\0\0\0\0\0\0\0\x20\x8a\x08\0\0\0\0\0\0\0\x20\x86K\x01K\x01\x86\x89tR.",
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_what_a_pickle_asks_for_in_vain_is_refused_with_file_and_entry(
    tmp_path: Path, content: bytes
) -> None:
    path = _with_pickle(tmp_path, content)
    with pytest.raises(ValueError, match=re.escape(f'{path}: entry "data.pkl": ')):
        ops.load(path)


def test_empty_bytes_come_back(tmp_path: Path) -> None:
    assert _loaded([b"", b"a"], tmp_path) == [b"", b"a"]


def test_a_named_pipe_is_refused_without_waiting_for_a_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="pipe: not a regular file"):
        ops.load(tmp_path / "pipe")
    with pytest.raises(opscope.ModelFileError, match="pipe: not a regular file"):
        describe(tmp_path / "pipe")
