"""No contents of a segment directory stop the agent or lead it to other files."""

import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from opscope.host import budgets, segment_directory
from opscope.host.host import Host
from opscope.host.state_file import StateFile
from opscope.segments import layout
from opscope.segments.segment_file import SIZE_LIMIT
from tests.segments.segment_writer import Process, Range, SegmentWriter

ADD = [Range("numpy::add", 1e-3, 5, self_s=1e-3)]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    directory = tmp_path / "segments"
    directory.mkdir(mode=0o700)
    return directory


def agent(place: Path) -> Host:
    return Host([str(place)], consume=True, state=StateFile(str(place / "agent.state")))


def dead(number: int = 0) -> Process:
    return Process(process_start=1 + number)


def old(path: Path) -> Path:
    """Makes it look an hour old."""
    then = time.time() - 3600
    os.utime(path, (then, then), follow_symlinks=False)
    return path


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A segment outside of the given directories, which must stay unchanged."""
    directory = tmp_path / "elsewhere"
    directory.mkdir(mode=0o700)
    path = SegmentWriter(dead()).add(ADD).write(directory)
    before = path.read_bytes()
    yield path
    assert path.read_bytes() == before


# Each replaces a dead process's segment; the number is the calls counted for it.
def a_link(path: Path, elsewhere: Path) -> None:
    path.symlink_to(elsewhere)


def a_link_to_nothing(path: Path, elsewhere: Path) -> None:
    path.symlink_to("/nothing")


def a_link_to_itself(path: Path, elsewhere: Path) -> None:
    path.symlink_to(path.name)


def a_pipe(path: Path, elsewhere: Path) -> None:
    os.mkfifo(path)


def a_directory(path: Path, elsewhere: Path) -> None:
    path.mkdir()


def a_sparse_giant(path: Path, elsewhere: Path) -> None:
    path.write_bytes(SegmentWriter(dead()).to_bytes())
    os.truncate(path, 1 << 40)


def a_sparse_large_one(path: Path, elsewhere: Path) -> None:
    path.write_bytes(b"")
    os.truncate(path, SIZE_LIMIT)


def a_claim_of_chunks_that_are_holes(path: Path, elsewhere: Path) -> None:
    raw = SegmentWriter(dead(), chunk_count=layout.CHUNK_LIMIT).to_bytes()
    path.write_bytes(raw)
    os.truncate(path, SIZE_LIMIT)


@pytest.mark.parametrize(
    ("put", "reason"),
    [
        (a_link, "not-a-file"),
        (a_link_to_nothing, "not-a-file"),
        (a_link_to_itself, "not-a-file"),
        (a_pipe, "not-a-file"),
        (a_directory, "not-a-file"),
        (a_sparse_giant, "oversized"),
        (a_sparse_large_one, "magic"),
        (a_claim_of_chunks_that_are_holes, "identity"),
    ],
)
def test_damaged_files_are_counted_by_reason_and_the_others_are_read(
    place: Path, elsewhere: Path, put: Callable[[Path, Path], None], reason: str
) -> None:
    SegmentWriter(dead(7)).add(ADD).write(place)
    put(place / dead(1).file_name, elsewhere)
    observer = agent(place)
    for _ in range(3):
        snapshot = observer.collect()
        assert snapshot.calls.sum() == 5
        assert snapshot.bad_segments == {(reason,): 1}
        observer.sweep()
    observer.close()


def test_an_old_link_is_not_followed_when_it_is_not_removed_either(
    place: Path, elsewhere: Path
) -> None:
    path = place / dead(1).file_name
    path.symlink_to(elsewhere)
    old(path)
    agent(place).collect()
    assert path.is_symlink()


def test_a_hard_link_to_a_file_of_another_owner_is_not_read(place: Path) -> None:
    path = SegmentWriter(dead()).add(ADD).write(place)
    os.chown(path, 12345, -1)
    snapshot = agent(place).collect()
    assert snapshot.calls.sum() == 0
    assert snapshot.bad_segments == {("owner",): 1}


NAMES = [
    "new\nline.seg",
    "12-34-0123456789abcdef.seg\n",
    "../12-34-0123456789abcdef.seg".replace("/", "\u2044"),
    "\x1b[2J.seg",
    "-rf",
    "12-34-0123456789abcdef.seg.trace\nx",
    "9" * 11 + "-34-0123456789abcdef.seg",
    "12-" + "9" * 21 + "-0123456789abcdef.seg",
    "٣-٣-0123456789abcdef.seg",
    "1" * 255,
]


def test_files_with_other_names_stay(place: Path) -> None:
    for name in NAMES:
        (place / name).write_bytes(b"")
    invalid = os.fsencode(place) + b"/\xff\xfe-1-0123456789abcdef.seg"
    os.close(os.open(invalid, os.O_CREAT | os.O_WRONLY, 0o600))
    SegmentWriter(dead()).add(ADD).write(place)
    snapshot = agent(place).collect()
    assert snapshot.calls.sum() == 5
    assert len(os.listdir(os.fsencode(place))) == len(NAMES) + 2


def test_numbers_as_large_as_a_name_can_have_are_taken(place: Path) -> None:
    process = Process(2**32 - 1, 10**20 - 1)
    (place / process.file_name).write_bytes(b"garbage")
    assert agent(place).collect().bad_segments == {("truncated",): 1}


def test_a_directory_swapped_for_a_link_is_not_followed_to_remove(
    place: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After reading and before removing, another file takes the same name."""
    path = SegmentWriter(dead()).add(ADD).write(place)
    twin = elsewhere.parent / path.name
    twin.write_bytes(b"precious")
    state = StateFile(str(elsewhere.parent / "agent.state"))
    observer = Host([str(place)], consume=True, state=state)
    real = StateFile.save

    def swap(self: StateFile, raw: bytes) -> None:
        real(self, raw)
        place.rename(place.with_name("moved"))
        place.symlink_to(elsewhere.parent)

    monkeypatch.setattr(StateFile, "save", swap)
    assert observer.collect().calls.sum() == 5
    assert twin.read_bytes() == b"precious"
    twin.unlink()


def test_files_of_another_directory_are_not_removed_by_a_name_with_a_way(
    place: Path, elsewhere: Path
) -> None:
    (place / f"{os.getpid()}-1.why").symlink_to("5:denied:x")
    (place / "..-1.why").symlink_to("5:denied:x")
    agent(place).collect()
    assert elsewhere.exists()


def test_thousands_of_files_are_read_in_turn_and_none_twice(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment_directory, "_FILE_LIMIT", 50)
    for number in range(160):
        SegmentWriter(dead(number)).add(ADD).write(place)
    observer = agent(place)
    for _ in range(5):
        observer.collect()
    snapshot = observer.collect()
    assert snapshot.calls.sum() == 5 * 160
    assert snapshot.bad_segments == {("too-much",): 1}
    assert os.listdir(place) == ["agent.state"]


def test_files_beyond_the_limit_do_not_count_as_removed(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(60):
        SegmentWriter(Process()).add(ADD).write(place)
    observer = agent(place)
    limit = segment_directory._FILE_LIMIT
    for now in (limit, 50, limit, 50, limit):
        monkeypatch.setattr(segment_directory, "_FILE_LIMIT", now)
        assert observer.collect().calls.sum() == 5 * 60


def test_a_directory_that_takes_too_long_is_read_on_the_next_time(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budgets, "SECONDS", -1.0)
    for number in range(5):
        SegmentWriter(Process()).add([Range(f"op{number}", 1e-3)]).write(place)
    observer = agent(place)
    counts = [len(observer.collect().keys) for _ in range(6)]
    assert counts == [1, 2, 3, 4, 5, 5]


def test_a_directory_takes_only_so_much_memory(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budgets, "BYTES_LIMIT", 200_000)
    for _ in range(20):
        writer = SegmentWriter(Process())
        writer.add(Range(f"op{number}", 1e-3) for number in range(200)).write(place)
    snapshot = agent(place).collect()
    assert 0 < snapshot.calls.sum() < 20 * 200
    assert sum(snapshot.bad_segments.values()) > 10


def test_one_line_for_all_histograms_is_refused(place: Path) -> None:
    """A small file must not become a large one in memory."""
    writer = SegmentWriter(dead()).add(Range(f"op{number}", 1e-3) for number in range(80))
    raw = bytearray(writer.to_bytes())
    for chunk in range(layout.HEADER_BYTES, len(raw), layout.CHUNK_BYTES):
        if int.from_bytes(raw[chunk : chunk + 4], "little") == layout.CELLS:
            for cell in range(80):
                at = chunk + layout.CHUNK_HEADER_BYTES + cell * layout.CELL.itemsize + 64
                raw[at : at + 128] = (1).to_bytes(2, "little") * 64
    (place / writer.process.file_name).write_bytes(raw)
    assert agent(place).collect().bad_segments == {("corrupt",): 1}


def test_more_names_than_a_recorder_makes_are_refused(place: Path) -> None:
    writer = SegmentWriter(dead())
    for number in range(1100):
        writer.entry(layout.ENTRY_LABELS, number + 1, "model_id", str(number))
    writer.write(place)
    assert agent(place).collect().bad_segments == {("too-much",): 1}


def test_entries_of_unknown_kinds_are_bounded_too(place: Path) -> None:
    writer = SegmentWriter(dead()).add(ADD)
    for number in range(70_000):
        writer.entry(99, number)
    writer.write(place)
    assert agent(place).collect().bad_segments == {("too-much",): 1}


def test_a_damaged_file_is_read_less_and_less_often(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = place / Process().file_name
    path.write_bytes(b"garbage")
    observer = agent(place)
    looks = 0
    real = os.open

    def counted(name: str, *args: object, **kwargs: object) -> int:
        nonlocal looks
        looks += name == path.name
        return real(name, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", counted)
    for _ in range(100):
        observer.collect()
    assert 5 < looks < 20


def test_files_beside_a_removed_segment_are_removed_later(place: Path) -> None:
    gone, living = SegmentWriter(dead()).add(ADD), SegmentWriter().add(ADD)
    beside = [Path(f"{writer.write(place)}.trace") for writer in (gone, living)]
    for path in beside:
        path.write_bytes(b"")
    observer = agent(place)
    observer.collect()
    observer.collect()
    assert all(path.exists() for path in beside)  # a reader may have it open
    for path in beside:
        old(path)
    observer.collect()
    assert [path.exists() for path in beside] == [False, True]


def test_nothing_is_made_writable_or_left_behind_by_reading(place: Path) -> None:
    path = SegmentWriter().add(ADD).write(place)
    path.chmod(0o600)
    observer = agent(place)
    before = path.stat()
    observer.collect()  # which reserves some space for later, in its own file
    descriptors = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        observer.collect()
    after = path.stat()
    assert (before.st_mode, before.st_mtime_ns) == (after.st_mode, after.st_mtime_ns)
    assert stat.S_IMODE((place / "agent.state").stat().st_mode) == 0o600
    assert len(os.listdir("/proc/self/fd")) == descriptors
