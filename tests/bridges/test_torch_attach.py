"""When the PyTorch bridge attaches, and when it stands down and leaves PyTorch as it is."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import opscope
from opscope._native import lib
from opscope.attachment import ledger
from opscope.bridges import torch as bridge
from opscope.errors import BridgeError

from .torch_observed import counts, observed, observing, run, unobserved

UNKNOWN = "not a version known to work"


@pytest.fixture(autouse=True)
def detached() -> Iterator[None]:
    yield
    bridge.detach()


def _is_seen() -> bool:
    names: list[str] = []
    handle = opscope.add_global_callback(lambda fn: names.append(fn.name))
    torch.ones(1)
    opscope.remove_callback(handle)
    return "aten::ones" in names


def test_attached_it_sees_operators_and_detached_it_does_not() -> None:
    assert not _is_seen()
    bridge.attach()
    bridge.attach()
    assert bridge.status().attached
    assert bridge.status().version == torch.__version__
    assert _is_seen()
    bridge.detach()
    assert not bridge.status().attached
    assert not _is_seen()
    bridge.attach()
    assert _is_seen()


@pytest.mark.parametrize("version", ["2.99.0", "2.13", "2.13.00", "2.1", "3", "", "2.13.0a0+git"])
def test_an_unknown_version_is_not_attached(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "__version__", version)
    with pytest.raises(BridgeError, match=UNKNOWN):
        bridge.attach()
    assert not bridge.status().attached
    assert UNKNOWN in bridge.status().reason
    assert not _is_seen()


@pytest.mark.parametrize("version", ["2.13.0", "2.13.0+cpu", "2.13.0+cu130"])
def test_builds_of_a_known_version_are(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "__version__", version)
    bridge.attach()
    assert _is_seen()


def test_where_a_trial_fails_the_bridge_stands_down() -> None:
    enable = torch.autograd._enable_record_function  # pyright: ignore[reportPrivateImportUsage]
    enable(False)
    try:
        with pytest.raises(BridgeError, match="an operator ran and no callback was called"):
            bridge.attach()
    finally:
        enable(True)
    assert not _is_seen()
    bridge.attach()
    assert _is_seen()


def test_where_the_trial_operator_raises_so_does_attach_and_nothing_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(torch, "empty", broken)
    with pytest.raises(RuntimeError, match="broken"):
        bridge.attach()
    monkeypatch.undo()
    assert not lib.opscope_torch_is_called()
    assert not _is_seen()


def test_without_torch_there_is_nothing_to_attach(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "torch")
    with pytest.raises(BridgeError, match="not imported"):
        bridge.attach()


def test_a_program_that_imports_torch_is_attached_by_itself(tmp_path: Path) -> None:
    observed(tmp_path, "import torch; torch.ones(3)")
    found = counts(tmp_path / "segments")
    assert found.calls["aten::ones"] == 1
    (process,) = found.snapshot.processes
    assert process.bridges["torch"] == "attached"
    assert process.notes["torch"] == torch.__version__
    assert process.notes["torch.device_type"] == bridge.facts()["torch.device_type"]


def test_a_device_is_told_of_where_pytorch_is_built_for_one_and_there_is_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    driver = tmp_path / "nvidiactl"
    monkeypatch.setattr(bridge, "_DEVICES", (("cuda", str(driver), ("CUDA_VISIBLE_DEVICES",)),))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    assert bridge.facts() == {"torch.device_type": "cpu"}
    driver.touch()
    assert bridge.facts() == {"torch.device_type": "cuda"}
    for visible, kind in (("", "cpu"), ("-1", "cpu"), ("0", "cuda"), ("1,3", "cuda")):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        assert bridge.facts() == {"torch.device_type": kind}
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setattr(torch.version, "cuda", None)
    assert bridge.facts() == {"torch.device_type": "cpu"}


def test_times_of_a_program_with_a_device_are_said_to_be_of_dispatch(tmp_path: Path) -> None:
    driver = tmp_path / "nvidiactl"
    driver.touch()
    program = (
        "import torch, opscope\nfrom opscope.bridges import torch as bridge\n"
        f"bridge._DEVICES = (('cuda', {str(driver)!r}, ()),)\ntorch.version.cuda = '13.0'\n"
        "opscope.attach()\ntorch.zeros(3)\nprint(torch.cuda.is_initialized())"
    )
    assert unobserved(tmp_path, program) == "False\n"
    snapshot = counts(tmp_path / "segments").snapshot
    (process,) = snapshot.processes
    assert process.notes["torch.device_type"] == "cuda"
    alive = replace(snapshot, processes=(process._replace(is_alive=True),))
    devices = {(name, version): device for _, name, version, device in alive.framework_info}
    assert devices["torch", torch.__version__] == "cuda"


def test_a_program_may_attach_itself_after_its_import(tmp_path: Path) -> None:
    program = "import torch, opscope; torch.ones(3); opscope.attach(); torch.zeros(3)"
    unobserved(tmp_path, program)
    found = counts(tmp_path / "segments")
    assert found.calls["aten::zeros"] == 1
    assert found.calls["aten::ones"] == 0


@pytest.mark.parametrize(
    ("spoiled", "reason"),
    [
        ("torch.__version__ = '2.99.0'", f"torch: torch 2.99.0: {UNKNOWN}"),
        (
            "torch.autograd._enable_record_function(False)",
            f"torch: torch {torch.__version__}: an operator ran and no callback was called",
        ),
    ],
)
def test_the_reason_is_in_the_ledger_and_the_program_goes_on(
    spoiled: str, reason: str, tmp_path: Path
) -> None:
    program = f"import torch, opscope; {spoiled}; opscope.attach(); print(torch.ones(2).sum())"
    output = unobserved(tmp_path, program)
    assert output == "tensor(2.)\n"
    assert [entry.text for entry in ledger.read_all([str(tmp_path / "segments")])] == [reason]
    (process,) = counts(tmp_path / "segments").snapshot.processes
    assert process.bridges["torch"] == reason.removeprefix("torch: ")


def test_a_torch_that_is_none_is_left_alone(tmp_path: Path) -> None:
    stub = tmp_path / "torch"
    stub.mkdir()
    (stub / "__init__.py").write_text("__version__ = '2.13.0'\ndef empty(*a, **k): 1 / 0\n")
    program = [sys.executable, "-c", "import torch; print(torch.__version__)"]
    done = run(program, tmp_path, observing(tmp_path, {}))
    assert (done.returncode, done.stdout, done.stderr) == (0, "2.13.0\n", "")
    (entry,) = ledger.read_all([str(tmp_path / "segments")])
    assert entry.text == "torch: torch 2.13.0: libtorch_cpu is not loaded"
