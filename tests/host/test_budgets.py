"""A user's directories cannot use up the shares of other users."""

import glob
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from opscope import config
from opscope.host import budgets, ledgers, segment_directory
from opscope.host.bounded_names import OTHER, BoundedNames
from opscope.host.budgets import LimitedPasses, Share, Turns, fair
from opscope.host.host import Host
from opscope.host.snapshot import Snapshot
from opscope.host.state import decode, encode
from opscope.installation import checks
from opscope.segments import layout, segment
from opscope_exporters.prometheus import exporter as prometheus
from tests.segments.segment_writer import Process, Range, SegmentWriter

HOSTILE, HONEST, LATE = 4242, 7777, 7778

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="makes files of other users")


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """Replaces /dev/shm."""
    tmp_path.chmod(0o1777)
    return tmp_path


def directory_of(shared: Path, user: int, name: str = "") -> Path:
    path = shared / f"opscope-{name or user}"
    if not path.exists():
        path.mkdir(mode=0o700)
        os.chown(path, user, -1)
    return path


def write(directory: Path, writer: SegmentWriter) -> Path:
    user = directory.stat().st_uid
    writer.header.setdefault("uid", user)
    path = writer.write(directory)
    os.chown(path, user, -1)
    return path


def work(op: str = "numpy::add") -> SegmentWriter:
    return SegmentWriter(Process()).add([Range(op, 1e-3, 5)])


def root_agent(shared: Path, max_series: int = 2000) -> Host:
    return Host([f"{glob.escape(str(shared))}/opscope-*"], consume=True, max_series=max_series)


def calls_of(snapshot: Snapshot, op: str) -> float:
    rows = zip(snapshot.keys, snapshot.calls.tolist(), strict=True)
    return float(sum(calls for key, calls in rows if key.op == op))


def is_cut(snapshot: Snapshot, user: int, resource: str) -> bool:
    return snapshot.own.limited.get((str(user), resource), 0) > 0


def test_empty_directories_hide_no_other_user(shared: Path) -> None:
    for number in range(1100):
        directory_of(shared, HOSTILE, f"0{number:04}")
    agent = root_agent(shared)
    first = agent.collect()
    assert is_cut(first, HOSTILE, "directories")
    for user in (HONEST, LATE):
        write(directory_of(shared, user), work(f"op{user}"))
    second = agent.collect()
    assert [calls_of(second, f"op{user}") for user in (HONEST, LATE)] == [5, 5]
    assert second.own.limited[str(HOSTILE), "directories"] == 2
    assert not is_cut(second, HONEST, "directories")


def test_directories_that_go_give_their_places_back(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budgets, "DIRECTORY_LIMIT", 8)
    agent = root_agent(shared)
    for turn in range(3):
        made = [directory_of(shared, HOSTILE, f"x{turn}{number}") for number in range(3)]
        write(directory_of(shared, HOSTILE, f"x{turn}2"), work(f"op{turn}"))
        assert calls_of(agent.collect(), f"op{turn}") == 5
        for path in made:
            for file in path.iterdir():
                file.unlink()
            path.rmdir()
        agent.collect()


def hostile_operators(shared: Path) -> None:
    writer = SegmentWriter(Process())
    writer.add(Range(f"fake{number}", 1e-3) for number in range(2000))
    write(directory_of(shared, HOSTILE), writer)


def test_fake_operators_leave_room_for_those_of_others(shared: Path) -> None:
    write(directory_of(shared, HONEST), work("first"))
    agent = root_agent(shared)
    agent.collect()
    hostile_operators(shared)
    snapshot = agent.collect()
    assert is_cut(snapshot, HOSTILE, "series")
    late = SegmentWriter(Process()).add(Range(f"late{n}", 1e-3, 5) for n in range(200))
    write(directory_of(shared, LATE), late)
    snapshot = agent.collect()
    assert {calls_of(snapshot, f"late{n}") for n in range(200)} == {5}
    assert not is_cut(snapshot, LATE, "series")


def test_a_user_alone_gets_nearly_all_series(shared: Path) -> None:
    hostile_operators(shared)
    agent = root_agent(shared)
    assert len(agent.collect().keys) > 1300


def test_in_each_pass_each_user_gets_a_turn(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "SECONDS", -1.0)
    for number in range(6):
        directory = directory_of(shared, HOSTILE, f"a{number}")
        for _ in range(3):
            write(directory, work("hostile"))
    for _ in range(2):
        write(directory_of(shared, HONEST), work("honest"))
    agent = root_agent(shared)
    seen = [agent.collect() for _ in range(18)]
    assert [calls_of(one, "honest") for one in seen[:3]] == [5, 10, 10]
    # One file per pass, and each one eventually.
    assert [calls_of(one, "hostile") for one in seen] == [5 * n for n in range(1, 19)]
    assert is_cut(seen[-1], HOSTILE, "time")


def test_a_user_that_takes_long_leaves_their_part_to_the_others() -> None:
    now = [0.0]
    turns = Turns(clock=lambda: now[0])

    def run(needs: dict[int, float]) -> dict[int, float]:
        got = {}
        for user, deadline in turns.of(needs):
            got[user] = min(needs[user], deadline - now[0])
            now[0] += got[user]
        return got

    needs = {HOSTILE: 1000.0, HONEST: 0.5, LATE: 1.0}
    for _ in range(2):
        assert sum(run(needs).values()) <= budgets.SECONDS
    assert run(needs) == {HOSTILE: pytest.approx(budgets.SECONDS - 1.5), HONEST: 0.5, LATE: 1.0}


def test_memory_is_shared_among_users_over_all_directories(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budgets, "BYTES_LIMIT", 1 << 20)
    agent = root_agent(shared)
    for number in range(6):
        for _ in range(5):
            writer = SegmentWriter(Process())
            writer.add(Range(f"fake{n}", 10.0 ** -(n % 9)) for n in range(300))
            write(directory_of(shared, HOSTILE, f"a{number}"), writer)
    snapshot = agent.collect()
    assert is_cut(snapshot, HOSTILE, "bytes")
    held = sum(file.nbytes for file in agent._files())
    assert held < 1 << 20
    write(directory_of(shared, HONEST), work("honest"))
    snapshot = agent.collect()
    assert calls_of(snapshot, "honest") == 5
    assert not is_cut(snapshot, HONEST, "bytes")


def test_empty_chunks_take_of_their_users_memory(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budgets, "BYTES_LIMIT", 1 << 20)
    for _ in range(40):
        path = write(directory_of(shared, HOSTILE), work())
        os.truncate(path, layout.HEADER_BYTES + layout.CHUNK_LIMIT * layout.CHUNK_BYTES)
        header = np.memmap(path, layout.HEADER, "r+", shape=1)
        header["chunk_count"] = layout.CHUNK_LIMIT
        header.flush()
    agent = root_agent(shared)
    for _ in range(2):
        assert is_cut(agent.collect(), HOSTILE, "bytes")
    heads = sum(len(file.dictionary.heads) for file in agent._files() if file.dictionary)
    assert 100 * heads < 1 << 20


def test_files_that_grow_later_find_no_more_memory_than_new_ones(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budgets, "BYTES_LIMIT", 1 << 20)
    writers = [SegmentWriter(Process()).add([Range("fake", 1e-3)]) for _ in range(40)]
    for writer in writers:
        write(directory_of(shared, HOSTILE), writer)
    agent = root_agent(shared)
    agent.collect()
    for writer in writers:
        writer.add(Range(f"fake{n}", 10.0 ** -(n % 9)) for n in range(300))
        write(directory_of(shared, HOSTILE), writer)
    snapshot = agent.collect()
    assert is_cut(snapshot, HOSTILE, "bytes")
    assert sum(file.nbytes for file in agent._files()) < 1 << 20
    assert calls_of(snapshot, "fake") == 40


def test_files_are_shared_among_users(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "FILE_LIMIT", 20)
    for number in range(30):
        (directory_of(shared, HOSTILE) / f"1-{number}-{number:016x}.seg").write_bytes(b"x")
    agent = root_agent(shared)
    agent.collect()
    for _ in range(4):
        write(directory_of(shared, HONEST), work("honest"))
    snapshot = agent.collect()
    assert calls_of(snapshot, "honest") == 20
    assert is_cut(snapshot, HOSTILE, "files")


def ledger_entry(directory: Path, number: int, code: str) -> None:
    path = directory / f"{os.getpid()}-{number}.why"
    path.symlink_to(f"5:{code}:text")
    os.chown(path, directory.stat().st_uid, -1, follow_symlinks=False)


def test_reasons_of_one_user_leave_room_for_those_of_others(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledgers, "LIMIT", 50)
    for number in range(200):
        ledger_entry(directory_of(shared, HOSTILE, "a"), number, "error")
    ledger_entry(directory_of(shared, HONEST), 1, "denied")
    agent = Host([f"{glob.escape(str(shared))}/opscope-*"], consume=False)
    for _ in range(2):
        agent.collect()
    snapshot = agent.collect()
    assert snapshot.attach_results["process", "denied"] == 1
    assert 0 < snapshot.attach_results["process", "error"] <= 50
    assert is_cut(snapshot, HOSTILE, "ledger")


def test_names_of_one_user_leave_room_for_those_of_others() -> None:
    limited = LimitedPasses()
    names = BoundedNames(100, limited=limited)
    got = Counter(names.bounded(f"fake{n}", HOSTILE) for n in range(1000))
    assert got[OTHER] == 950
    assert names.bounded("honest", HONEST) == "honest"
    assert limited.counts == {(str(HOSTILE), "names"): 1}


def test_the_next_agent_knows_which_user_added_each_name(shared: Path) -> None:
    for n in range(3):
        writer = work()
        writer.note("service.name", f"service{n}")
        writer.usage(f"api{n}")
        writer.metric("opscope.memory.live", "cpu", 1, layout.METRIC_GAUGE)
        write(directory_of(shared, HONEST), writer)
    write(directory_of(shared, LATE), work())
    agent = root_agent(shared)
    agent.collect()
    tables = decode(encode(agent._state)).tables
    for table in (tables.services, tables.usage, tables.measures):
        assert Counter(table.users())[HONEST] == 3
    assert tables.services.users() == agent._state.tables.services.users()


def test_a_share_leaves_some_for_who_comes_late() -> None:
    share = Share(100, LimitedPasses(), "names")
    got = [sum(share.asks(user) for _ in range(1000)) for user in range(5)]
    assert got == [50, 25, 13, 6, 3]
    share.take(0, -50)
    assert sum(share.asks(9) for _ in range(1000)) > 20


def test_things_are_cut_from_who_has_most() -> None:
    taken, cut = fair({1: ["a"] * 100, 2: ["b"] * 3, 3: ["c"] * 40}, 50)
    assert (Counter(taken), cut) == ({"a": 24, "b": 3, "c": 23}, [3, 1])
    assert fair({1: ["a"]}, 50) == (["a"], [])


def test_the_number_of_reported_users_is_bounded() -> None:
    limited = LimitedPasses()
    for user in range(1000):
        limited.note(user, "files")
    assert len(limited.counts) == 65
    assert limited.counts["other", "files"] == 1


def test_label_pairs_of_a_file_are_at_most_those_that_a_recorder_makes(shared: Path) -> None:
    """Prometheus drops a whole scrape where one sample has more than `label_limit` labels."""
    writer = SegmentWriter(Process())
    pairs = tuple((f"label{n}", f"{n}") for n in range(1000))
    write(directory_of(shared, HOSTILE), writer.add([Range("fake", 1e-3, labels=pairs)]))
    write(directory_of(shared, HONEST), work("honest"))
    agent = root_agent(shared)
    snapshot = agent.collect()
    assert calls_of(snapshot, "fake") == 1
    assert is_cut(snapshot, HOSTILE, "labels")
    pieces, _ = prometheus.create({"octaves": 1.0}).page(snapshot, "text/plain")
    page = b"".join(pieces)
    assert max(line.count(b'="') for line in page.splitlines()) <= 10
    told = f'opscope_agent_limited_total{{uid="{HOSTILE}",resource="labels"}} 1.0\n'.encode()
    assert told in page


def _a_file(path: Path) -> None:
    path.write_text("")


def _a_link(path: Path) -> None:
    path.symlink_to("/etc")


def _a_directory(path: Path) -> None:
    path.mkdir(mode=0o777)


def _a_pipe(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize("squat", [_a_file, _a_link, _a_directory, _a_pipe])
def test_a_name_added_by_another_user_hides_no_other_name(
    shared: Path, squat: Callable[[Path], None]
) -> None:
    for name in ("opscope-0", "opscope-1234"):
        squat(shared / name)
        os.chown(shared / name, HOSTILE, -1, follow_symlinks=False)
    write(directory_of(shared, HONEST), work("honest"))
    agent = root_agent(shared)
    assert calls_of(agent.collect(), "honest") == 5
    assert agent.sweep() == 0


def test_a_file_that_fails_in_an_unforeseen_way_is_one_bad_file(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(directory_of(shared, HOSTILE), work("fake"))
    write(directory_of(shared, HONEST), work("honest"))
    read = segment.read_changed

    def read_or_fail(file: object, header: object, *rest: object) -> object:
        if getattr(header, "uid", 0) == HOSTILE:
            raise MemoryError
        return read(file, header, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(segment_directory, "read_changed", read_or_fail)
    snapshot = root_agent(shared).collect()
    assert calls_of(snapshot, "honest") == 5
    assert snapshot.bad_segments == {("failed",): 1}


def test_doctor_names_users_that_are_given_less_and_names_that_were_taken(shared: Path) -> None:
    for number in range(1100):
        directory_of(shared, HOSTILE, f"0{number:04}")
    directory_of(shared, HOSTILE, "1234")
    settings = config.load({"OPSCOPE_DIR": str(shared / "opscope-0")}, "/nothing")
    os.chown(shared / "opscope-1234", HOSTILE, -1)
    found = checks.shares(settings)
    assert (found.verdict, found.found) == (checks.WARNS, f"uid {HOSTILE}: directories")
    found = checks.names(settings)
    assert found.verdict == checks.WARNS
    assert f"opscope-1234 belongs to uid {HOSTILE}" in found.found


def test_doctor_names_who_has_too_many_series_and_not_who_waits_for_some(shared: Path) -> None:
    # Read in this order, in which the first one gets all that a user alone may have.
    for user, count in ((4000, 2000), (4001, 200), (4002, 200)):
        writer = SegmentWriter(Process()).add(Range(f"op{user}-{n}", 1e-3) for n in range(count))
        write(directory_of(shared, user), writer)
    settings = config.load({"OPSCOPE_DIR": str(shared / "opscope-0")}, "/nothing")
    assert checks.shares(settings).found == "uid 4000: series"


def test_doctor_finds_nothing_where_all_is_well(shared: Path) -> None:
    write(directory_of(shared, HONEST), work())
    settings = config.load({"OPSCOPE_DIR": str(shared / "opscope-0")}, "/nothing")
    assert [checks.shares(settings).verdict, checks.names(settings).verdict] == [checks.FINE] * 2
