"""The recorder from Python: start, stop, status, notes, sampling, and errors for bad input."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import opscope
from opscope.errors import RecorderError
from opscope.record import recorder


@pytest.fixture(autouse=True)
def stopped() -> Iterator[None]:
    yield
    if recorder.status().running:
        recorder.stop(discard=True)


def work(count: int = 10) -> None:
    for _ in range(count):
        with opscope.record_function("x"):
            pass


def test_it_runs_from_start_to_stop_and_leaves_its_segment(tmp_path: Path) -> None:
    recorder.start(str(tmp_path))
    work()
    status = recorder.status()
    assert status.running
    assert status.in_window
    assert (status.dropped_count, status.folded_count, status.window_count) == (0, 0, 0)
    assert 0 < status.record_cost_s < 1e-3
    segment = Path(status.path)
    assert segment.parent == tmp_path
    assert segment.name.startswith(f"{os.getpid()}-")
    assert segment.suffix == ".seg"
    recorder.stop()
    assert not recorder.status().running
    assert recorder.status().path == ""
    assert segment.exists()


def test_stop_with_discard_removes_the_segment(tmp_path: Path) -> None:
    recorder.start(str(tmp_path))
    work()
    recorder.stop(discard=True)
    assert list(tmp_path.iterdir()) == []


def test_it_creates_its_directory_for_its_user_only(tmp_path: Path) -> None:
    recorder.start(str(tmp_path / "new"))
    work()
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


def test_it_is_a_callback_as_others_are(tmp_path: Path, seen: list[str]) -> None:
    recorder.start(str(tmp_path))
    assert opscope.has_callbacks()
    work(3)
    assert seen == ["x"] * 3


def test_two_recorders_in_one_process_are_an_error(tmp_path: Path) -> None:
    recorder.start(str(tmp_path))
    with pytest.raises(RecorderError, match=f"cannot record into {tmp_path}"):
        recorder.start(str(tmp_path))
    assert recorder.status().running


def test_it_can_be_started_again(tmp_path: Path) -> None:
    for _ in range(3):
        recorder.start(str(tmp_path))
        work()
        recorder.stop()
    assert len(list(tmp_path.glob("*.seg"))) == 3


@pytest.mark.parametrize("directory", ["", "relative", "/proc/nowhere", "/dev/null/below"])
def test_a_directory_that_cannot_be_used_is_an_error_that_names_it(directory: str) -> None:
    with pytest.raises(RecorderError, match=f"cannot record into {directory}: ."):
        recorder.start(directory)
    assert not recorder.status().running
    work()


@pytest.mark.parametrize("sampling", [-0.1, 1.1, float("nan")])
def test_a_probability_outside_0_to_1_is_an_error_that_names_it(
    sampling: float, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=rf"\[0, 1\], not {sampling}"):
        recorder.start(str(tmp_path), sampling=sampling)
    recorder.start(str(tmp_path))
    with pytest.raises(ValueError, match=rf"\[0, 1\], not {sampling}"):
        recorder.set_sampling(sampling)


@pytest.mark.parametrize(
    ("window_ms", "period_ms"), [(2.0, 0.0), (2.0, 2.0), (-1.0, 100.0), (float("nan"), 100.0)]
)
def test_a_window_that_does_not_fit_is_an_error_that_names_it(
    window_ms: float, period_ms: float, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=f"a window of {window_ms} ms does not fit"):
        recorder.start(str(tmp_path), window_ms=window_ms, period_ms=period_ms)


def test_sampling_can_be_changed_while_it_runs(tmp_path: Path) -> None:
    recorder.start(str(tmp_path), sampling=0.5)
    recorder.set_sampling(0.01)
    recorder.set_sampling(1.0, window_ms=2, period_ms=100)
    work()
    recorder.set_sampling(1.0)
    assert recorder.status().in_window


def test_functions_that_need_a_recorder_report_that_none_runs() -> None:
    with pytest.raises(RecorderError, match="no recorder runs"):
        recorder.stop()
    with pytest.raises(RecorderError, match="no recorder runs"):
        recorder.set_sampling(1.0)
    with pytest.raises(RecorderError, match="cannot note program"):
        recorder.note("program", "x")


def test_notes_are_taken_while_it_runs(tmp_path: Path) -> None:
    recorder.start(str(tmp_path))
    recorder.note("program", "größe \ud800")
    recorder.note("program", "again")
    recorder.stop()
    (segment,) = tmp_path.iterdir()
    assert b"program" in segment.read_bytes()


def _child_that_records_into(directory: Path) -> int:
    """Its pid; it has ended."""
    recorder.start(str(directory))
    work()
    child = os.fork()
    if child == 0:
        work()
        os._exit(0 if recorder.status().path.startswith(f"{directory}/{os.getpid()}-") else 1)
    assert os.waitpid(child, 0)[1] == 0
    return child


def test_the_child_of_a_fork_has_a_segment_of_its_own(tmp_path: Path) -> None:
    child = _child_that_records_into(tmp_path)
    assert {path.name.split("-")[0] for path in tmp_path.iterdir()} == {
        str(os.getpid()),
        str(child),
    }


def test_a_child_of_the_same_user_stays_in_a_directory_named_after_another(tmp_path: Path) -> None:
    place = tmp_path / f"opscope-{os.geteuid() + 1}"
    place.mkdir(mode=0o700)
    _child_that_records_into(place)
    assert [path.name for path in tmp_path.iterdir()] == [place.name]
