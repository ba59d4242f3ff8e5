"""When the PyTorch bridge attaches, and when it leaves PyTorch unchanged."""

import sys
from collections import Counter
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

from .torch_observed import counts, observed, observing, run, unobserved_fork

REPOSITORY = Path(__file__).parents[2]
UNTRIED_REASON = "not a tried version, as torch_versions demands"


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


def test_a_build_without_the_bridge_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge, "_IS_BUILT", False)
    bridge.arriving()
    with pytest.raises(BridgeError, match="opscope for musl has no bridge to PyTorch"):
        bridge.attach()
    assert not bridge.status().attached
    assert not _is_seen()


def test_without_the_gil_it_stands_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge, "_HAS_GIL", False)
    bridge.arriving()
    with pytest.raises(BridgeError, match="needs the GIL; this Python is free-threaded"):
        bridge.attach()
    assert not bridge.status().attached
    assert not _is_seen()


UNTRIED = ["2.99.0", "2.13", "2.13.00", "2.1", "3", "", "2.13.0a0+git", "2.8.0a0+34c6371d24.nv25.8"]


@pytest.mark.parametrize("version", UNTRIED)
def test_what_a_version_is_called_does_not_matter(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "__version__", version)
    bridge.attach()
    assert "torch.without" not in bridge.facts()
    assert _is_seen()


@pytest.mark.parametrize("version", UNTRIED)
def test_an_untried_version_is_not_attached_where_the_settings_say_so(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "__version__", version)
    monkeypatch.setattr(bridge, "_versions", "tried")
    with pytest.raises(BridgeError, match=UNTRIED_REASON):
        bridge.attach()
    assert not bridge.status().attached
    assert UNTRIED_REASON in bridge.status().reason
    assert not _is_seen()


@pytest.mark.parametrize("version", ["2.13.0", "2.13.0+cpu", "2.13.0+cu130"])
def test_builds_of_a_tried_version_are(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "__version__", version)
    monkeypatch.setattr(bridge, "_versions", "tried")
    bridge.attach()
    assert _is_seen()


def test_the_setting_reaches_an_observed_program(tmp_path: Path) -> None:
    program = "import torch, opscope; torch.__version__ = '2.99.0'; opscope.attach(); torch.ones(1)"
    unobserved_fork(tmp_path, program, OPSCOPE_TORCH_VERSIONS="tried")
    found = counts(tmp_path / "segments")
    (process,) = found.snapshot.processes
    assert process.bridges["torch"] == f"torch 2.99.0: {UNTRIED_REASON}"
    assert found.calls["aten::ones"] == 0


def test_the_documents_list_the_tried_versions() -> None:
    text = (REPOSITORY / "native" / "bridges" / "COVERAGE.md").read_text()
    assert f"Tried: {', '.join(bridge.TRIED)}." in " ".join(text.split())


def test_without_a_layout_ranges_have_names_and_counts(
    tmp_path: Path,
) -> None:
    # A profile imports torch._dynamo, and that of PyTorch 2.8 calls operators as it is imported.
    program = """
import torch, torch._dynamo, opscope
torch.autograd.profiler.record_function = None
opscope.attach()
from opscope.bridges import torch as bridge
print(bridge.facts()["torch.without"])
x = torch.zeros(3, requires_grad=True)
with torch.profiler.profile() as profile:
    (x * 2).sum().backward()
print(*[event.name() for event in profile.profiler.kineto_results.events()], sep="|")
"""
    without, listed = unobserved_fork(tmp_path, program).splitlines()
    assert without == (
        "inputs, outputs and sequence numbers (PyTorch called no callback for a record_function); "
        "outer ranges without a callback (record_function does not call the known operators)"
    )
    found = counts(tmp_path / "segments")
    (process,) = found.snapshot.processes
    assert process.bridges["torch"] == "attached"
    assert process.notes["torch.without"] == without
    for name, count in Counter(listed.split("|")).items():
        if name.startswith(("aten::", "autograd::")) or name.endswith("Backward0"):
            assert found.calls[name] == count, name
    assert found.phases["aten::mul"] == {"forward", "backward"}


def test_a_failed_trial_disables_the_bridge() -> None:
    enable = torch.autograd._enable_record_function  # pyright: ignore[reportPrivateImportUsage]
    enable(False)
    try:
        with pytest.raises(BridgeError, match="PyTorch called no callback for an operator"):
            bridge.attach()
    finally:
        enable(True)
    assert not _is_seen()
    bridge.attach()
    assert _is_seen()


def test_an_error_of_the_trial_operator_leaves_nothing_attached(
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


def test_a_device_is_reported_if_pytorch_supports_it_and_it_exists(
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


def test_times_of_a_program_with_a_device_that_attaches_itself_are_marked_as_dispatch(
    tmp_path: Path,
) -> None:
    driver = tmp_path / "nvidiactl"
    driver.touch()
    program = (
        "import torch, opscope\nfrom opscope.bridges import torch as bridge\n"
        f"bridge._DEVICES = (('cuda', {str(driver)!r}, ()),)\ntorch.version.cuda = '13.0'\n"
        "torch.ones(3); opscope.attach(); torch.zeros(3)\nprint(torch.cuda.is_initialized())"
    )
    assert unobserved_fork(tmp_path, program) == "False\n"
    found = counts(tmp_path / "segments")
    assert (found.calls["aten::ones"], found.calls["aten::zeros"]) == (0, 1)
    snapshot = found.snapshot
    (process,) = snapshot.processes
    assert process.notes["torch.device_type"] == "cuda"
    alive = replace(snapshot, processes=(process._replace(is_alive=True),))
    devices = {(name, version): device for _, name, version, device in alive.framework_info}
    assert devices["torch", torch.__version__] == "cuda"


@pytest.mark.parametrize(
    ("spoiled", "reason"),
    [
        ("torch.empty = None", "torch: TypeError(\"'NoneType' object is not callable\")"),
        (
            "torch.autograd._enable_record_function(False)",
            f"torch: torch {torch.__version__}: PyTorch called no callback for an operator",
        ),
    ],
)
def test_the_reason_is_in_the_ledger_and_the_program_goes_on(
    spoiled: str, reason: str, tmp_path: Path
) -> None:
    program = f"import torch, opscope; {spoiled}; opscope.attach(); print(torch.ones(2).sum())"
    output = unobserved_fork(tmp_path, program)
    assert output == "tensor(2.)\n"
    assert [entry.text for entry in ledger.read_all([str(tmp_path / "segments")])] == [reason]
    (process,) = counts(tmp_path / "segments").snapshot.processes
    assert process.bridges["torch"] == reason.removeprefix("torch: ")


def test_another_module_named_torch_is_left_alone(tmp_path: Path) -> None:
    stub = tmp_path / "torch"
    stub.mkdir()
    (stub / "__init__.py").write_text("__version__ = '2.13.0'\ndef empty(*a, **k): 1 / 0\n")
    program = [sys.executable, "-c", "import torch; print(torch.__version__)"]
    done = run(program, tmp_path, observing(tmp_path, {}))
    assert (done.returncode, done.stdout, done.stderr) == (0, "2.13.0\n", "")
    (entry,) = ledger.read_all([str(tmp_path / "segments")])
    assert entry.text == "torch: torch 2.13.0: libtorch_cpu is not loaded"
