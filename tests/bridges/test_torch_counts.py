"""Counts and times of PyTorch's operators equal those of torch.profiler."""

import statistics
from collections import Counter
from pathlib import Path

import pytest
import torch

import opscope
from opscope._native import lib
from opscope.record import recorder
from tests.waiting import until

from .torch_observed import (
    Counts,
    Step,
    counts,
    profiled_calls,
    profiler,
    train_step,
    transformer_step,
    working_step,
)

STEPS = {"train": train_step, "transformer": transformer_step}


pytestmark = pytest.mark.usefixtures("torch_attached")


def _both(step: Step, directory: Path, turns: int) -> tuple[Counts, Counter[str], dict[str, float]]:
    """The counts of the recorder and of the profiler over the same turns, both with p=1."""
    step()
    with profiler() as profiled:
        recorder.start(str(directory))
        for _ in range(turns):
            step()
        recorder.stop()
    self_us = {event.key: event.self_cpu_time_total for event in profiled.key_averages()}
    return counts(directory), profiled_calls(profiled), self_us


@pytest.mark.parametrize("name", STEPS)
def test_calls_are_those_of_the_profiler_exactly(name: str, tmp_path: Path) -> None:
    found, calls, _ = _both(STEPS[name](), tmp_path, 20)
    assert found.calls == calls
    assert len(calls) > 20
    assert found.snapshot.health.dropped == 0


def test_the_profilers_averages_leave_out_a_range_alone_in_one_of_its_own_name(
    tmp_path: Path,
) -> None:
    def step() -> None:
        with torch.profiler.record_function("same"), torch.profiler.record_function("same"):
            torch.ones(1)
        with torch.profiler.record_function("same"):
            torch.ones(1)
            with torch.profiler.record_function("same"):
                pass

    step()
    with profiler() as profiled:
        recorder.start(str(tmp_path))
        step()
        recorder.stop()
    averages = {event.key: event.count for event in profiled.key_averages()}
    assert averages["same"] == 3
    assert counts(tmp_path).calls["same"] == profiled_calls(profiled)["same"] == 4


def test_self_times_are_shared_out_as_by_the_profiler(tmp_path: Path) -> None:
    # Operators with work to do, as the profiler's own time is within small ones. A thread that is
    # stopped between the two reads of the clock spoils its round for an operator, so rounds are
    # short and what counts is the median: with two dozen programs at once on two processors one
    # round in twelve was spoilt. How much there is to do in an operator tells its quickest round.
    step = working_step()
    ratios: dict[str, list[float]] = {}
    least_us: dict[str, float] = {}
    for turn in range(31):
        found, _, self_us = _both(step, tmp_path / str(turn), 3)
        total = sum(self_us.values())
        for op, microseconds in self_us.items():
            if microseconds > 0:
                ratio = found.self_share(op) / (microseconds / total)
                ratios.setdefault(op, []).append(ratio)
                least_us[op] = min(microseconds, least_us.get(op, microseconds))
        ratios.setdefault("all", []).append(sum(found.self_s.values()) / (total / 1e6))
    large = [op for op, us in least_us.items() if us > 0.02 * sum(least_us.values())]
    medians = {op: statistics.median(ratios[op]) for op in ["all", *large]}
    assert len(medians) > 5
    assert medians == {op: pytest.approx(1.0, rel=0.1) for op in medians}


def test_nested_operators_are_not_counted_twice(tmp_path: Path) -> None:
    linear = torch.nn.Linear(256, 256)
    inputs = torch.randn(256, 256)
    recorder.start(str(tmp_path))
    for _ in range(20):
        linear(inputs)
    recorder.stop()
    found = counts(tmp_path)
    assert found.calls["aten::linear"] == found.calls["aten::addmm"] == 20
    total_s = dict(
        zip((key.op for key in found.snapshot.keys), found.snapshot.total_s, strict=True)
    )
    assert found.self_s["aten::linear"] < total_s["aten::linear"] - total_s["aten::addmm"] + 1e-6
    assert sum(found.self_s.values()) == pytest.approx(total_s["aten::linear"], rel=1e-6)


def test_each_range_has_its_phase(tmp_path: Path) -> None:
    step = train_step()
    step()
    recorder.start(str(tmp_path))
    step()
    recorder.stop()
    phases = counts(tmp_path).phases
    assert phases["aten::addmm"] == {"forward"}
    assert phases["aten::mm"] == phases["AddmmBackward0"] == {"backward"}
    assert phases["torch::autograd::AccumulateGrad"] == {"backward"}
    assert phases["autograd::engine::evaluate_function: AddmmBackward0"] == {"backward"}
    assert phases["Optimizer.step#Adam.step"] == {"optimizer"}
    assert phases["aten::addcdiv_"] == {"optimizer"}
    loading = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    assert phases[loading] == phases["aten::stack"] == {"data"}
    assert phases["step"] == {"other"}


def test_windows_find_the_true_mix_of_operators(tmp_path: Path) -> None:
    step = train_step()
    step()
    with profiler() as profiled:
        step()
    expected = profiled_calls(profiled)
    in_step = sum(expected.values())

    recorder.start(str(tmp_path), window_ms=2.0, period_ms=8.0)
    turns = 0

    def turn() -> None:
        nonlocal turns
        step()
        turns += 1

    until(lambda: recorder.status().window_count >= 300, "300 windows", turn)
    recorder.stop()
    found = counts(tmp_path)
    assert set(found.calls) <= set(expected)
    # Of shares the error is that of which part of a step the windows hit; how often all operators
    # were called depends also on how busy the machine was during windows and between them.
    for op, count in expected.items():
        assert found.share(op) == pytest.approx(count / in_step, rel=0.35, abs=0.004), op
    assert 0.3 < found.total_calls / (turns * in_step) < 3.0


def test_outside_of_windows_pytorch_reports_only_outer_ranges(tmp_path: Path) -> None:
    step = train_step()
    recorder.start(str(tmp_path), window_ms=1.0, period_ms=1e6)
    step()  # its first range starts windows, and outside of them operators run unobserved
    assert not lib.opscope_torch_is_called()
    step()
    lib.opscope_recorder_window_begin(3.0)
    assert lib.opscope_torch_is_called()
    torch.ones(3)
    lib.opscope_recorder_window_end()
    assert not lib.opscope_torch_is_called()
    step()
    recorder.stop()
    found = counts(tmp_path).calls
    outer = {op for op in found if not op.startswith("aten::")}
    assert "Optimizer.step#Adam.step" in outer
    assert {op: found[op] for op in found.keys() - outer} == {
        "aten::ones": 3,
        "aten::empty": 3,
        "aten::fill_": 3,
    }


def test_a_failing_operator_is_an_error(tmp_path: Path) -> None:
    recorder.start(str(tmp_path))
    with pytest.raises(RuntimeError):
        torch.mm(torch.ones(2, 3), torch.ones(2, 3))
    torch.mm(torch.ones(2, 3), torch.ones(3, 2))
    recorder.stop()
    snapshot = counts(tmp_path).snapshot
    failed = dict(zip((key.op for key in snapshot.keys), snapshot.errors, strict=True))
    assert failed["aten::mm"] == 1
    assert sum(failed.values()) == 1


def test_a_profiler_started_and_stopped_meanwhile_changes_nothing(tmp_path: Path) -> None:
    recorder.start(str(tmp_path))
    for _ in range(3):
        torch.ones(3)
        with profiler() as profiled:
            torch.ones(3)
        seen = {event.key: event.count for event in profiled.key_averages()}
        assert seen == {"aten::ones": 1, "aten::empty": 1, "aten::fill_": 1}
    recorder.stop()
    assert counts(tmp_path).calls == {"aten::ones": 6, "aten::empty": 6, "aten::fill_": 6}


def test_labels_are_on_forward_and_backward(tmp_path: Path) -> None:
    model = torch.nn.Linear(4, 4)
    recorder.start(str(tmp_path))
    for label in ("a", "b"):
        with opscope.debug_info(model_id=label):
            model(torch.ones(1, 4)).sum().backward()
    recorder.stop()
    snapshot = counts(tmp_path).snapshot
    labels = {(key.op, *key.labels) for key in snapshot.keys}
    for op in ("aten::addmm", "AddmmBackward0", "torch::autograd::AccumulateGrad"):
        assert {(op, ("model_id", "a")), (op, ("model_id", "b"))} <= labels
