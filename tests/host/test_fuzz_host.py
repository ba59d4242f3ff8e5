"""Random segments and directories: a short run of what `make fuzz-agent` does for longer."""

import random
from pathlib import Path

import pytest

from opscope.segments import segment
from tests.examples import few_or
from tests.host import fuzz_directories, fuzz_segments
from tests.host.fuzz_host import run

EXECUTIONS, SEGMENTS, ROUNDS = few_or(50, 250), few_or(600, 3000), few_or(6, 30)


@pytest.mark.examples
@pytest.mark.parametrize("seed", range(2))
def test_a_pass_ends_well_whatever_a_file_holds(seed: int) -> None:
    assert run(seconds=600.0, executions=EXECUTIONS, seed=seed) == EXECUTIONS


@pytest.mark.examples
def test_the_reader_ends_well_whatever_it_reads() -> None:
    counts = fuzz_segments.batch(1, seed=1, size=SEGMENTS)
    assert counts.segments >= SEGMENTS
    assert 0 < counts.again < counts.read < counts.segments
    assert counts.segments == counts.read + sum(counts.reasons.values())
    assert {"corrupt", "magic", "truncated", "version"} <= counts.reasons.keys()


def test_a_batch_follows_from_its_seed_and_number() -> None:
    first, again, other = (fuzz_segments.batch(number, 1, 500) for number in (1, 1, 2))
    assert (first.read, first.reasons) == (again.read, again.reasons)
    assert first.reasons != other.reasons


def test_a_changed_segment_is_made_whole_again() -> None:
    for raw in fuzz_segments.seeds():
        file = fuzz_segments.Mutated(raw, random.Random(1))
        for _ in range(100):
            file.change(8)
            file.cut(len(raw) // 2)
            assert file.to_bytes() != raw
            file.repair()
            assert file.to_bytes() == raw


def test_a_reader_that_fails_is_reported_with_its_segment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(segment, "_metrics", lambda chunks: dict[int, int]()[len(chunks)])
    with pytest.raises(KeyError):
        fuzz_segments.batch(7, seed=5, size=100)
    assert "batch 7 of seed 5" in capsys.readouterr().err
    assert len(Path("crash-fuzz-segment.bin").read_bytes()) > 4096


def test_a_run_goes_on_where_it_was_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "progress"
    counts = fuzz_segments.Counts(segments=10, read=4, longest_s=0.5, reasons={"magic": 6})
    fuzz_segments.Progress(path, 3).finish(0, counts)
    with path.open("a") as file:
        file.write('{"seed": 3, "ba')  # ended while it wrote
    known = fuzz_segments.Progress(path, None)
    assert (known.seed, known.finished, known.total) == (3, {0}, counts)
    assert next(known.numbers()) == 1
    monkeypatch.setattr(fuzz_segments, "reader_version", lambda: "another")
    changed = fuzz_segments.Progress(path, None)
    assert (changed.total.segments, changed.by_this_reader.segments) == (10, 0)


@pytest.mark.slow
@pytest.mark.examples
def test_all_that_reads_ends_well_whatever_directories_hold() -> None:
    done, _ = fuzz_directories.run(seconds=600.0, rounds=ROUNDS, seed=15)
    assert done == ROUNDS
