"""Imprecise numbers are marked as such, everywhere that numbers are shown."""

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from opscope.cli._group import main
from opscope.host import processor_time
from opscope.host.host import Host
from opscope.host.processor_time import ProcessorTime, ProcessStat
from opscope.host.snapshot import OTHER
from opscope.reports import certainty
from opscope.reports.recording import Recording, Selection, record
from opscope.reports.table import screen
from opscope.reports.view import View, by_operator, view
from opscope.server.live import Live
from opscope_exporters.jsonl import lines
from tests.segments.segment_writer import (
    PHASE_BACKWARD,
    PHASE_FORWARD,
    Process,
    Range,
    SegmentWriter,
    start_of,
)

SURE, UNSURE = "numpy::add", "numpy::inv"
A_SECOND = 1_000_000_000


@pytest.fixture(autouse=True)
def _is_never_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor_time, "of_threads", lambda pid, _: None)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Two operators in windows, over 10 s: 4,000 calls ± 40, and 520 ± 400 with few samples."""
    writer = SegmentWriter(window_ns=2_000_000, period_ns=40_000_000, created_unix_ns=A_SECOND)
    writer.add([Range(SURE, 1e-3, 400, 10.0, self_s=1e-3)])
    writer.add([Range(UNSURE, 1e-3, 4, 130.0, self_s=1e-3)])
    writer.variance(SURE, 40.0**2, 0.04**2)
    writer.variance(UNSURE, 400.0**2, 0.40**2)
    writer.variance(None, 500.0**2, 0.5**2)
    writer.write(tmp_path)
    return tmp_path


def host(place: Path) -> Host:
    return Host([str(place)], consume=False, clock_ns=lambda: 11 * A_SECOND)


def seen(place: Path) -> View:
    return view(host(place).collect(), None, by_operator)


def test_rows_have_their_errors(place: Path) -> None:
    sure, unsure = seen(place).rows
    assert (sure.calls_per_s, sure.calls_error) == (400.0, 4.0)
    assert (unsure.calls_per_s, unsure.calls_error) == (52.0, 40.0)
    assert unsure.self_error == pytest.approx(0.4 / 4.52)
    assert (sure.is_unsure, unsure.is_unsure) == (False, True)


def test_quantiles_of_too_few_samples_are_not_known(place: Path) -> None:
    sure, unsure = seen(place).rows
    assert not any(map(math.isnan, (sure.p50_s, sure.p95_s, sure.p99_s)))
    assert all(map(math.isnan, (unsure.p50_s, unsure.p95_s, unsure.p99_s)))


def test_an_increase_whose_error_is_not_stated_yet_is_no_exact_count(tmp_path: Path) -> None:
    """A process states the errors of a window later than its calls."""
    writer = SegmentWriter(window_ns=2_000_000, period_ns=40_000_000, created_unix_ns=A_SECOND)
    writer.add([Range(SURE, 1e-3, 400, 10.0, self_s=1e-3)])
    writer.add([Range("user::step", 1e-3, 7, self_s=1e-3)]).variance(SURE, 40.0**2, 0.04**2)
    writer.write(tmp_path)
    before = host(tmp_path).collect()
    writer.add([Range(SURE, 1e-3, 4, 10.0, self_s=1e-3)])
    writer.add([Range("user::step", 1e-3, 3, self_s=1e-3)]).write(tmp_path)
    late = Host([str(tmp_path)], consume=False, clock_ns=lambda: 13 * A_SECOND)
    estimate, exact = view(late.collect(), before, by_operator).rows
    assert estimate.calls_per_s == 20.0
    # Of four samples that stand for ten calls each.
    assert estimate.calls_error == pytest.approx(math.sqrt(40 * 9) / 2)
    assert estimate.self_error == pytest.approx(0.04 * math.sqrt(40 * 9) / 40 / 0.043)
    assert estimate.is_unsure
    assert all(map(math.isnan, (estimate.p50_s, estimate.p95_s, estimate.p99_s)))
    assert (exact.calls_error, exact.self_error, exact.is_unsure) == (0.0, 0.0, False)
    assert not any(map(math.isnan, (exact.p50_s, exact.p95_s, exact.p99_s)))


@pytest.mark.parametrize(
    ("samples", "known"), [(4, 0), (5, 1), (19, 1), (20, 2), (99, 2), (100, 3)]
)
def test_each_quantile_takes_its_samples(tmp_path: Path, samples: int, known: int) -> None:
    SegmentWriter().add([Range("a", 1e-3, samples, 2.0)]).write(tmp_path)
    (row,) = seen(tmp_path).rows
    assert sum(not math.isnan(one) for one in (row.p50_s, row.p95_s, row.p99_s)) == known


def test_a_view_states_how_many_calls_an_operator_without_a_row_may_have(place: Path) -> None:
    shown = seen(place)  # 404 samples with a weight of 11.2 on average: 4,520 calls
    assert shown.unseen.calls == pytest.approx(-math.log(0.05) * 4520 / 404)
    assert shown.unseen.time_share == 0.0
    assert "an operator with fewer than 33.5 calls may be missing" in top(place)
    assert json.loads(top(place, "--json"))["unseen_calls"] == shown.unseen.calls


def test_it_is_that_of_the_service_with_the_fewest_samples(place: Path) -> None:
    often = SegmentWriter(
        Process(2**31 - 1, 1), created_unix_ns=A_SECOND, sampling_prob_ppt=10**12 // 2
    )
    often.note("service.name", "sampled often")
    often.add([Range(SURE, 1e-3, 1_000_000, 2.0)]).write(place)
    assert seen(place).unseen.calls == pytest.approx(-math.log(0.05) * 4520 / 404)


def test_nothing_is_missing_where_every_range_is_recorded(tmp_path: Path) -> None:
    SegmentWriter().add([Range("a", 1e-3, 2)]).write(tmp_path)
    assert seen(tmp_path).unseen == certainty.NOTHING_UNSEEN
    assert "missing" not in top(tmp_path)


def test_few_windows_may_all_miss_a_part_of_the_program(tmp_path: Path) -> None:
    """However many ranges they recorded."""
    writer = SegmentWriter(window_ns=2_000_000, period_ns=40_000_000, created_unix_ns=A_SECOND)
    writer.add([Range(SURE, 1e-3, 4000, 10.0, self_s=1e-3)])
    for phase in (PHASE_FORWARD, PHASE_BACKWARD):
        # A window has half of its calls in each phase: of four with 10,000 calls.
        writer.variance(None, 500.0**2, calls_squared=4 * 5_000.0**2, phase=phase)
    writer.variance(SURE, 500.0**2)
    writer.write(tmp_path)
    shown = seen(tmp_path)
    # A part that the four miss with a probability of 5 %.
    assert shown.unseen.time_share == pytest.approx(1 - 0.05 ** (1 / 4))
    # Few and long calls may be in no window, whatever their time: each has a weight of ten.
    assert shown.unseen.calls == pytest.approx(-math.log(0.05) * 10)
    missing = "an operator with less than 53 % of the time or fewer than 30.0 calls may be missing"
    assert missing in " ".join(top(tmp_path).split())
    page = json.loads(Live(host(tmp_path).collect, lambda _: [], lambda: 0.0).answer())
    assert page["unseen_time_share"] == shown.unseen.time_share
    assert json.loads(top(tmp_path, "--json"))["unseen_time_share"] == shown.unseen.time_share


@pytest.mark.parametrize("windows", [1, 4, 100])
def test_a_part_of_that_size_is_missing_in_one_run_of_twenty(windows: int) -> None:
    unseen = certainty.unseen(1e9, windows * 1000.0, [windows * 1000.0**2])
    assert (1 - unseen.time_share) ** windows == pytest.approx(0.05)


@pytest.mark.parametrize("probability", [0.5, 0.01])
def test_at_that_many_calls_an_operator_is_missing_in_one_run_of_twenty(probability: float) -> None:
    calls = certainty.unseen(1000 * probability, 1000, []).calls
    assert (1 - probability) ** calls <= 0.05
    assert math.exp(-calls * probability) == pytest.approx(0.05)


def used(monkeypatch: pytest.MonkeyPatch, seconds: dict[int, float]) -> None:
    """These processes had a processor for so long."""
    monkeypatch.setattr(
        processor_time,
        "of_threads",
        lambda pid, _: {pid: ProcessorTime(int(seconds[pid] * A_SECOND))},
    )
    monkeypatch.setattr(processor_time, "of_process", lambda pid: ProcessStat())


def nightly(**settings: int) -> SegmentWriter:
    """A process of another service, which has no operator."""
    writer = SegmentWriter(Process(1, start_of(1)), created_unix_ns=A_SECOND, **settings)
    writer.note("service.name", "nightly")
    return writer


def test_a_service_of_which_windows_met_nothing_is_named(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used(monkeypatch, {os.getpid(): 12.0, 1: 0.31})
    nightly(window_ns=2_000_000, period_ns=40_000_000).write(place)
    assert dict(seen(place).unmet) == {"nightly": pytest.approx(0.31)}
    named = "windows met no operator of nightly (CPU time: 310 ms)"
    assert named in " ".join(top(place).split())
    page = json.loads(Live(host(place).collect, lambda _: [], lambda: 0.0).answer())
    assert page["about"].endswith(named)
    assert list(json.loads(top(place, "--json"))["unmet_cpu_s"]) == ["nightly"]


def test_one_that_did_next_to_nothing_is_not_named(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used(monkeypatch, {os.getpid(): 12.0, 1: 0.1})
    nightly(window_ns=2_000_000, period_ns=40_000_000).write(place)
    assert not seen(place).unmet


def test_one_whose_ranges_are_all_recorded_is_not_named(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used(monkeypatch, {os.getpid(): 12.0, 1: 5.0})
    nightly().write(place)
    assert not seen(place).unmet


def test_none_is_named_if_operators_beyond_the_limit_of_series_may_be_its(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used(monkeypatch, {os.getpid(): 12.0, 1: 5.0})
    writer = nightly(window_ns=2_000_000, period_ns=40_000_000)
    writer.add([Range(SURE, 1e-3, 4, 10.0, self_s=1e-3)])
    writer.variance(SURE, 40.0**2, 0.04**2)
    writer.write(place)
    limited = Host([str(place)], consume=False, max_series=1).collect()
    assert OTHER in limited.keys and len({key.service for key in limited.keys}) < 3
    assert not view(limited, None, by_operator).unmet


def test_a_line_names_three_services() -> None:
    unmet = {"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.0, "e": 0.5}
    assert certainty.unmet_in_words(unmet).endswith("c (CPU time: 2.00 s), 2 more")


def test_exact_recordings_have_all_quantiles(tmp_path: Path) -> None:
    SegmentWriter().add([Range("a", 1e-3, 2)]).write(tmp_path)
    (row,) = seen(tmp_path).rows
    assert row.p99_s == pytest.approx(1e-3, rel=0.05)
    assert not row.is_unsure


def test_the_terminal_marks_and_greys_them(place: Path) -> None:
    snapshot = host(place).collect()
    console = Console(width=120, force_terminal=True, color_system="standard")
    with console.capture() as caught:
        table = screen(snapshot, seen(place), sort="total", limit=5, by="operator", width=120)
        console.print(table)
    text = caught.get().splitlines()
    (sure,) = (line for line in text if SURE in line)
    (unsure,) = (line for line in text if UNSURE in line)
    assert "±" not in sure and "\x1b[2m" not in sure
    assert "52.0 ± 40.0" in unsure and "11.5 ± 8.8" in unsure and "\x1b[2m" in unsure
    assert certainty.in_words() in "\n".join(text)


def top(place: Path, *options: str) -> str:
    result = CliRunner(env={"COLUMNS": "80"}).invoke(
        main, ["top", "--directory", str(place), *options]
    )
    assert result.exit_code == 0, result.output
    return result.output


def test_a_narrow_table_has_room_for_them(place: Path) -> None:
    for by in ("operator", "process"):
        assert max(map(len, top(place, "--once", "--by", by).splitlines())) <= 80


def test_precise_values_have_no_legend(tmp_path: Path) -> None:
    SegmentWriter().add([Range(SURE, 1e-3, 400, self_s=1e-3)]).write(tmp_path)
    assert "±" not in top(tmp_path, "--once")


def test_top_for_scripts_has_standard_errors(place: Path) -> None:
    found = json.loads(top(place, "--json"))
    sure, unsure = found["operators"]
    assert (unsure["operator"], unsure["samples"], unsure["p50_s"]) == (UNSURE, 4, None)
    assert unsure["calls_per_s_error"] / unsure["calls_per_s"] == pytest.approx(400 / 520)
    assert unsure["is_unsure"] and not sure["is_unsure"]
    assert json.loads(top(place, "--json", "--by", "process"))["operators"][0]["pid"]


def test_the_page_gets_them(place: Path) -> None:
    live = Live(host(place).collect, lambda _: [], lambda: 0.0)
    answer: dict[str, Any] = json.loads(live.answer())
    _, unsure = answer["operators"]
    assert (unsure["calls_per_s"], unsure["calls_per_s_error"]) == (52.0, 40.0)
    assert unsure["is_unsure"] and unsure["p99_s"] is None
    assert "±" in answer["about"] and answer["unsure_above"] == certainty.UNSURE_ABOVE


def test_a_phase_has_the_error_of_all_its_operators_together(place: Path) -> None:
    now = {"s": 0.0}
    source = Host([str(place)], consume=False, clock_ns=lambda: round(now["s"] * 1e9))
    live = Live(source.collect, lambda _: [], lambda: now["s"])
    live.answer()
    writer = SegmentWriter(created_unix_ns=1)
    writer.note("service.name", "later")
    writer.add([Range(SURE, 1e-3, 100, 10.0, self_s=1e-3)])
    writer.variance(SURE, 9.0, 0.03**2)
    writer.variance(None, 9.0, 0.05**2)
    writer.write(place)
    now["s"] = 10.0
    by = json.loads(live.answer())["by"]
    assert by["phase"] == [["forward", pytest.approx(0.1), pytest.approx(100), pytest.approx(5e-3)]]
    assert by["service"][0][3] == pytest.approx(5e-3)
    assert by["framework"][0][3] == pytest.approx(3e-3)


def test_json_lines_have_them(place: Path) -> None:
    found = {line.get("op"): line for line in lines(host(place).collect(), "here")}
    assert found[UNSURE]["opscope.op.calls.error"] == 400.0
    assert found[UNSURE]["opscope.op.self_time.error"] == pytest.approx(0.4)
    assert "opscope.op.duration.p50" not in found[UNSURE]
    assert found[SURE]["opscope.op.duration.p99"] == pytest.approx(1e-3, rel=0.05)


def test_recordings_have_them_and_older_ones_are_read(tmp_path: Path) -> None:
    place, path = tmp_path / "segments", str(tmp_path / "a.rec")
    place.mkdir()
    writer = SegmentWriter(created_unix_ns=1).add([Range("a", 1e-3, 10, 2.0, self_s=1e-3)])
    writer.variance("a", 4.0, 4e-6)
    writer.write(place)

    def work(_: float) -> None:
        writer.add([Range("a", 1e-3, 10, 2.0, self_s=1e-3)])
        writer.variance("a", 13.0, 13e-6)
        writer.write(place)

    (made,) = record([str(place)], [Selection()], slices=1, slice_s=1.0, sleep=work)
    made.save(path)
    ((found,),) = Recording.load(path).operators.values()
    assert found.calls_error == pytest.approx(3.0)
    assert found.self_error == pytest.approx(3e-3)
    older = type(found)(*found[:4])
    assert (older.calls_error, older.self_error) == (0.0, 0.0)
