"""Schedules, events and the table for notebooks: what scripts for torch.profiler use."""

import re

import pytest

import opscope
import opscope.tensor as core
from opscope.errors import RecorderError
from opscope.timeline.schedule import ProfilerAction


def work(number: int) -> None:
    with opscope.record_function(f"step {number}"):
        core.ones([4]).neg()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"wait": 1, "warmup": 1, "active": 2}, "-wrs-wrs"),
        ({"wait": 0, "warmup": 0, "active": 1}, "ssssssss"),
        ({"wait": 0, "warmup": 1, "active": 2, "repeat": 1}, "wrs-----"),
        ({"wait": 1, "warmup": 0, "active": 1, "repeat": 2, "skip_first": 3}, "----s-s-"),
    ],
)
def test_a_schedule_repeats_its_cycle(options: dict[str, int], expected: str) -> None:
    action = opscope.schedule(**options)
    letters = dict(zip(ProfilerAction, "-wrs", strict=True))
    assert "".join(letters[action(step)] for step in range(8)) == expected


def test_a_schedule_is_that_of_torch() -> None:
    torch = pytest.importorskip("torch.profiler")
    for options in (
        {"wait": 2, "warmup": 1, "active": 3, "repeat": 2, "skip_first": 1},
        {"wait": 0, "warmup": 1, "active": 1},
    ):
        theirs, ours = torch.schedule(**options), opscope.schedule(**options)
        assert [theirs(i).name for i in range(30)] == [ours(i).name for i in range(30)]


@pytest.mark.parametrize("wrong", [{"active": 0}, {"wait": -1}, {"repeat": -1}])
def test_a_schedule_that_cannot_be_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="schedule"):
        opscope.schedule(**{"wait": 0, "warmup": 0, "active": 1, **wrong})


def test_each_recording_has_the_steps_of_its_cycle() -> None:
    seen: list[set[str]] = []

    def ready(prof: opscope.profile) -> None:
        seen.append({row.key for row in prof.key_averages() if row.key.startswith("step")})

    with opscope.profile(
        schedule=opscope.schedule(wait=1, warmup=1, active=2), on_trace_ready=ready
    ) as prof:
        for number in range(7):
            work(number)
            prof.step()
    # The last recording ended with the block, in its first step.
    assert seen == [{"step 2", "step 3"}, {"step 6"}]
    assert prof.step_num == 7


def test_before_a_recording_there_is_nothing_to_read() -> None:
    with opscope.profile(schedule=opscope.schedule(wait=9, warmup=0, active=1)) as prof:
        work(0)
    with pytest.raises(RecorderError, match="has recorded nothing yet"):
        prof.events()
    assert "nothing recorded yet" in prof._repr_html_()
    assert repr(prof) == "<opscope.profile: nothing recorded yet>"


def test_events_are_the_ranges_one_by_one() -> None:
    with opscope.profile(record_shapes=True) as prof, opscope.debug_info(model_id="m"):
        for number in range(3):
            work(number)
    found = prof.events()
    assert [one.name for one in found if one.depth == 0] == ["step 0", "step 1", "step 2"]
    assert [one.start for one in found] == sorted(one.start for one in found)
    for row in prof.key_averages():
        of_row = [one for one in found if one.name == row.key]
        assert len(of_row) == row.count
        assert sum(one.cpu_time_total for one in of_row) == pytest.approx(row.cpu_time_total)
        assert sum(one.self_cpu_time_total for one in of_row) == pytest.approx(
            row.self_cpu_time_total
        )
    (neg, *_) = (one for one in found if one.name == "core::neg")
    assert neg.input_shapes == ((4,),)
    assert neg.depth == 1
    assert len({one.thread for one in found}) == 1


def test_a_notebook_shows_the_table_with_names_escaped() -> None:
    with opscope.profile() as prof, opscope.record_function("<b>&"):
        core.ones([4]).neg()
    html = prof._repr_html_()
    assert "&lt;b&gt;&amp;" in html and "<b>" not in html
    assert len(re.findall("<tr>", html)) == 1 + len(prof.key_averages())
    assert "CPU Mem" in html


def test_memory_is_left_out_on_request() -> None:
    with opscope.profile(profile_memory=False) as prof:
        core.ones([4]).neg()
    assert "Mem" not in prof.table()
