"""With the setting `stamp`, what torch.save and torch.export.save write has the process's extra
files, and everybody loads it as before."""

from importlib.util import find_spec
from pathlib import Path

from opscope.models import describe

from .torch_observed import observed, observed_fork_that_exports, unobserved_fork

DEFINED = """
import io, json, sys, zipfile
import torch
class M(torch.nn.Module):
    def forward(self, x): return x + 1
def saved(save, *arguments):
    buffer = io.BytesIO(); save(*arguments, buffer)
    names = zipfile.ZipFile(buffer).namelist(); buffer.seek(0)
    return buffer, [name.partition("/")[2] for name in names if "/extra/" in name]
def both():
    state, names = saved(torch.save, {"a": torch.arange(3.0)})
    program, others = saved(torch.export.save, torch.export.export(M(), (torch.ones(1),)))
    print(names, others)
    print(torch.load(state, weights_only=True)["a"].tolist(),
          torch.export.load(program).module()(torch.ones(1)).tolist())
def only_save():
    _, names = saved(torch.save, {"a": torch.arange(3.0)})
    print(names)
"""
SAVE = f"{DEFINED}\nboth()"
ONLY_SAVE = f"{DEFINED}\nonly_save()"
"""Much faster: without torch.export."""
LOADED = "[0.0, 1.0, 2.0] [2.0]\n"
PRODUCER = "['extra/producer_info.json']"
EXPORTED = PRODUCER if find_spec("torch.export.pt2_archive") else "[]"
"""Earlier releases of PyTorch write exported programs in another way."""


def test_by_default_nothing_is_added(tmp_path: Path) -> None:
    assert observed_fork_that_exports(tmp_path, SAVE, OPSCOPE_PRODUCER="host") == f"[] []\n{LOADED}"


def test_both_formats_or_one(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    stamp = {"OPSCOPE_PRODUCER": "host", "OPSCOPE_STAMP": "torch.save,torch.export"}
    assert observed_fork_that_exports(tmp_path, SAVE, **stamp) == f"{PRODUCER} {EXPORTED}\n{LOADED}"
    stamp["OPSCOPE_STAMP"] = "torch.export"
    assert observed_fork_that_exports(tmp_path / "one", SAVE, **stamp) == f"[] {EXPORTED}\n{LOADED}"


def test_stamps_name_the_producer_until_the_program_detaches(tmp_path: Path) -> None:
    program = f"""{ONLY_SAVE}
torch.save({{"a": torch.ones(2)}}, {str(tmp_path / "a.pt")!r})
import opscope
writer = torch._C.PyTorchFileWriter
stamped = writer.write_end_of_file
opscope.detach()
print(writer.write_end_of_file is stamped)
opscope.set_export_extra_files_hook(lambda: {{"a": "b"}})
only_save()
"""
    settings = {"OPSCOPE_PRODUCER": "image", "OPSCOPE_IMAGE": "trainer:7"}
    output = observed(tmp_path, program, **settings, OPSCOPE_STAMP="torch.save")
    assert output == f"{PRODUCER}\nFalse\n[]\n"
    assert describe(tmp_path / "a.pt").producer == {"image": "trainer:7"}


def test_a_hook_that_raises_and_bad_names_spoil_no_save(tmp_path: Path) -> None:
    program = f"""{SAVE}
import logging
logging.disable()
import opscope
def broken(): raise OSError("no disk")
opscope.set_export_extra_files_hook(broken)
both()
opscope.set_export_extra_files_hook(lambda: {{"bytes": b"a\\0b", "a/b.txt": "below"}})
both()
"""
    output = observed_fork_that_exports(tmp_path, program, OPSCOPE_STAMP="torch.save")
    names = ["extra/bytes", "extra/a/b.txt"]
    assert output == f"[] []\n{LOADED}[] []\n{LOADED}{names} []\n{LOADED}"


def test_a_wrong_word_is_told_and_nothing_is_stamped(tmp_path: Path) -> None:
    program = f"import opscope; opscope.attach()\n{ONLY_SAVE}"
    assert unobserved_fork(tmp_path, program, OPSCOPE_STAMP="pickle") == "[]\n"
