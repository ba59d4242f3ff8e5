"""The process's extra files are in every TorchScript archive too; a saver's own file of the same
name wins."""

import io
import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import opscope
from opscope.attachment import ledger
from opscope.record import extra_files, producer_facts
from opscope.record.extra_files import PRODUCER_FILE

from .torch_observed import observed, observed_fork

LONG = "a text longer than any that a string keeps in itself, " * 100


@pytest.fixture
def hooked(torch_attached: None) -> Iterator[Callable[[dict[str, str]], None]]:
    """Has these files added to archives."""
    yield lambda files: opscope.set_export_extra_files_hook(lambda: files)
    opscope.set_export_extra_files_hook(None)
    extra_files.set_producer(())


@pytest.fixture(scope="module")
def module() -> Any:
    source: Any = torch.jit
    return source.trace(torch.nn.Linear(2, 2), torch.ones(1, 2), check_trace=False)


def _saved(module: Any, names: list[str], given: dict[str, str] | None = None) -> dict[str, str]:
    """Those extra files of the archive, "" where it has none of that name."""
    buffer = io.BytesIO()
    torch.jit.save(module, buffer, _extra_files=given)
    buffer.seek(0)
    files: Any = dict.fromkeys(names, "")
    torch.jit.load(buffer, _extra_files=files)
    return {
        name: text.decode() if isinstance(text, bytes) else text for name, text in files.items()
    }


pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit")


Hooked = Callable[[dict[str, str]], None]


@pytest.mark.usefixtures("hooked")
def test_every_archive_names_its_producer(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPSCOPE_IMAGE", "registry/trainer:7")
    extra_files.set_producer(["host", "image", "user"])
    for _ in range(3):
        files = _saved(module, [PRODUCER_FILE])
        facts = json.loads(files[PRODUCER_FILE])
        assert facts["host"] == socket.gethostname()
        assert facts["image"] == "registry/trainer:7"
        assert facts["user"]


def test_files_of_any_length_number_and_content(module: Any, hooked: Hooked) -> None:
    given = {"a": "b", "a name that is longer than fifteen": LONG, "zeros": "a\0b" * 20}
    given |= {f"file {number}": str(number) for number in range(100)}
    hooked(given)
    assert _saved(module, list(given)) == given
    hooked({"a": "later"})
    assert _saved(module, ["a", "zeros"]) == {"a": "later", "zeros": ""}


def test_a_file_of_the_savers_own_wins(module: Any, hooked: Hooked) -> None:
    hooked({"mine": "of the hook", "other": "of the hook"})
    found = _saved(module, ["mine", "other"], {"mine": "of the saver"})
    assert found == {"mine": "of the saver", "other": "of the hook"}


def test_threads_may_save_at_once(module: Any, hooked: Hooked) -> None:
    hooked({"a": LONG})
    found: list[dict[str, str]] = []

    def save() -> None:
        for _ in range(20):
            found.append(_saved(module, ["a"]))

    threads = [threading.Thread(target=save) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [{"a": LONG}] * 80


@pytest.mark.usefixtures("hooked")
def test_a_hook_that_raises_spoils_no_save(module: Any) -> None:
    def broken() -> dict[str, str]:
        raise OSError("no disk")

    before = opscope.export_extra_files_errors()
    opscope.set_export_extra_files_hook(broken)
    assert _saved(module, ["a"]) == {"a": ""}
    assert opscope.export_extra_files_errors() == before + 1


def test_the_git_revision_is_read_from_the_checkouts_files(tmp_path: Path) -> None:
    git = tmp_path / ".git"
    (git / "refs" / "heads").mkdir(parents=True)
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    (git / "HEAD").write_text("0123abcd\n")
    assert producer_facts._git_revision(str(below)) == "0123abcd"
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "packed-refs").write_text("# pack-refs\n4567 refs/heads/other\n89ab refs/heads/main\n")
    assert producer_facts._git_revision(str(below)) == "89ab"
    (git / "refs" / "heads" / "main").write_text("cdef\n")
    assert producer_facts._git_revision(str(below)) == "cdef"


SAVE = """
import io, json, torch
module = torch.jit.trace(torch.nn.Linear(2, 2), torch.ones(1, 2), check_trace=False)
def saved(given=None):
    buffer, files = io.BytesIO(), {"producer_info.json": ""}
    torch.jit.save(module, buffer, _extra_files=given)
    buffer.seek(0)
    torch.jit.load(buffer, _extra_files=files)
    found = files["producer_info.json"]
    return found.decode() if isinstance(found, bytes) else found
"""


def test_with_the_setting_every_observed_program_names_itself_until_it_detaches(
    tmp_path: Path,
) -> None:
    program = f"""{SAVE}
print(saved())
print(saved({{"producer_info.json": "mine"}}))
import opscope
opscope.detach()
print(repr(saved()))
"""
    variables = {"OPSCOPE_PRODUCER": "host,image,git", "OPSCOPE_IMAGE": "trainer:7"}
    printed = observed_fork(tmp_path, program, **variables, GIT_COMMIT="cdef").splitlines()
    assert json.loads(printed[0]) == {
        "host": socket.gethostname(),
        "image": "trainer:7",
        "git_revision": "cdef",
    }
    assert printed[1:] == ["mine", "''"]


HOOKED = f"""{SAVE}
print(repr(saved()))
import opscope
opscope.set_export_extra_files_hook(lambda: {{"producer_info.json": "of the hook"}})
print(saved())
opscope.detach()
print(repr(saved()))
"""


def test_by_default_a_program_names_itself_from_its_hook_on_until_it_detaches(
    tmp_path: Path,
) -> None:
    assert observed_fork(tmp_path, HOOKED) == "''\nof the hook\n''\n"


def test_ranges_are_recorded_even_if_applying_settings_fails(tmp_path: Path) -> None:
    program = """
import opscope
from opscope.bridges import torch as bridge

def broken(config):
    raise OSError("no user")

bridge.apply = broken
import torch
print(opscope.attach_status().bridges["torch"])
"""
    assert observed(tmp_path, program, OPSCOPE_PRODUCER="user") == "attached\n"
    texts = [entry.text for entry in ledger.read_all([str(tmp_path / "segments")])]
    assert texts == ["torch: OSError('no user')"]
