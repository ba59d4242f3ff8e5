"""An agent that ends at any moment and its successor count every range once."""

import json
import os
import struct
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opscope.errors import AgentError
from opscope.host.host import Host
from opscope.host.snapshot import SELF_NS, Snapshot
from opscope.host.state import State, StateError, decode, encode
from opscope.host.state_file import StateFile
from opscope.segments.layout import METRIC_COUNTER
from tests.segments.segment_writer import Process, Range, SegmentWriter, own_boot_id, start_of


@pytest.fixture
def place(tmp_path: Path) -> Path:
    directory = tmp_path / "segments"
    directory.mkdir(mode=0o700)
    return directory


def agent(place: Path, **options: Any) -> Host:
    state = StateFile(str(place / "agent.state"))
    return Host([str(place)], consume=True, state=state, **options)


def dead(number: int) -> Process:
    return Process(process_start=1 + number)


def work(number: int, calls: int, process: Process) -> SegmentWriter:
    writer = SegmentWriter(process, created_unix_ns=1000 + number)
    writer.note("service.name", f"service{number % 2}")
    writer.note("bridge.numpy", "attached")
    writer.usage(f"api{number % 2}")
    writer.metric("opscope.memory.allocated", "cpu", 100 * calls, METRIC_COUNTER)
    return writer.add([Range("numpy::add", 1e-3, calls, self_s=5e-4), Range("mm", 2e-6, 3 * calls)])


def said(snapshot: Snapshot) -> dict[str, Any]:
    """All counts, by name."""
    found: dict[str, Any] = {
        "usage": dict(snapshot.usage),
        "results": dict(snapshot.attach_results),
        "allocated": dict(snapshot.memory_allocated),
        "samples": snapshot.health.samples,
    }
    for row, key in enumerate(snapshot.keys):
        found[f"{key.service} {key.op}"] = (
            snapshot.counters[row].tolist(),
            int(snapshot.buckets[row].sum()),
        )
    return found


class Crash(BaseException):
    """Ends the agent: no handler of errors catches it."""


class Crashing:
    """Ends the agent before, or in the middle of, the nth change that it makes to files."""

    CHANGES = ("open", "write", "fsync", "rename", "unlink", "mkdir", "ftruncate")

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = -1
        self.seen: list[str] = []
        for name in self.CHANGES:
            monkeypatch.setattr(os, name, self._wrapped(name, getattr(os, name)))

    def _wrapped(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if self.left < 0 or (name == "open" and not args[1] & os.O_CREAT):
                return real(*args, **kwargs)
            self.seen.append(name)
            if self.left == 0:
                if name == "write":
                    real(args[0], bytes(args[1])[: len(args[1]) // 2])
                self.left = -1
                raise Crash
            self.left -= 1
            return real(*args, **kwargs)

        return call


def populate(place: Path) -> Counter[str]:
    """Three dead processes, a live one, a ledger entry, and files that a dead process left."""
    for number in range(3):
        work(number, 2 + number, dead(number)).write(place)
    work(3, 7, Process()).write(place)
    (place / f"{os.getpid()}-1.why").symlink_to("5:denied:a compiler")
    return Counter({"numpy::add": 2 + 3 + 4 + 7, "mm": 3 * (2 + 3 + 4 + 7)})


def calls(snapshot: Snapshot) -> Counter[str]:
    found: Counter[str] = Counter()
    for key, value in zip(snapshot.keys, snapshot.calls.tolist(), strict=True):
        found[key.op] += int(value)
    return found


def test_an_agent_that_ends_at_any_step_loses_nothing_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tmp_path / "whole"
    whole.mkdir(mode=0o700)
    truth = populate(whole)
    undisturbed = agent(whole)
    expected = said(undisturbed.collect())
    undisturbed.close()
    crashing = Crashing(monkeypatch)
    seen: set[str] = set()
    step, ended = 0, True
    while ended:
        place = tmp_path / f"step{step}"
        place.mkdir(mode=0o700)
        populate(place)
        first = agent(place)
        crashing.left, crashing.seen = step, []
        try:
            first.collect()
            ended = False
        except Crash:
            ended = True
        crashing.left = -1
        seen.update(crashing.seen)
        first.close()
        starts = []
        for _ in range(2):
            after = agent(place)
            snapshot = after.collect()
            assert calls(snapshot) == truth, step
            assert said(snapshot) == expected, step
            starts.append(snapshot.created_unix_ns.tolist())
            after.close()
        assert starts[0] == starts[1]
        assert sorted(path.suffix for path in place.iterdir()) == [".seg", ".state"], step
        step += 1
    assert seen == {"open", "write", "fsync", "rename", "unlink"}
    assert step >= 6


def test_a_second_crash_while_recovering_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashing = Crashing(monkeypatch)
    for first_step in range(2, 7):
        for second_step in range(4):
            place = tmp_path / f"{first_step}-{second_step}"
            place.mkdir(mode=0o700)
            truth = populate(place)
            for step in (first_step, second_step):
                one = agent(place)
                crashing.left = step
                try:
                    one.collect()
                except Crash:
                    pass
                crashing.left = -1
                one.close()
            last = agent(place)
            assert calls(last.collect()) == truth
            last.close()


def test_counts_of_a_sweep_survive_a_restart(place: Path) -> None:
    first = agent(place)
    first.collect()
    for number in range(100):
        work(number, 1, dead(number)).write(place)
    assert first.sweep() == 100
    assert [path.name for path in place.iterdir()] == ["agent.state"]
    first.close()
    assert calls(agent(place).collect()) == {"numpy::add": 100, "mm": 300}


def test_series_keep_their_number_and_their_start(place: Path) -> None:
    work(0, 1, dead(0)).write(place)
    first = agent(place)
    before = first.collect()
    first.close()
    work(1, 1, dead(1)).write(place)
    work(0, 1, Process()).write(place)
    after = agent(place).collect()
    assert after.keys[: len(before.keys)] == before.keys
    assert after.created_unix_ns[: len(before.keys)].tolist() == before.created_unix_ns.tolist()


def test_self_time_does_not_step_back_over_a_restart(place: Path) -> None:
    writer = SegmentWriter().add([Range("a", 1.0, 1, self_s=0.9), Range("a", 1.0, 9)])
    writer.write(place)
    first = agent(place)
    before = int(first.collect().counters[0, SELF_NS])
    first.close()
    writer.add([Range("a", 0.1, 9, self_s=0.0)]).write(place)
    assert int(agent(place).collect().counters[0, SELF_NS]) >= before


def test_series_beyond_the_limit_stay_in_other_over_a_restart(place: Path) -> None:
    SegmentWriter().add(Range(f"op{n}", 1e-3) for n in range(6)).write(place)
    first = agent(place, max_series=4)
    before = calls(first.collect())
    first.close()
    SegmentWriter(dead(1)).add(Range(f"op{n}", 1e-3) for n in range(5, 9)).write(place)
    after = calls(agent(place, max_series=4).collect())
    assert after == before + Counter({"other": 4})


def replaced_by_a_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/passwd")


def replaced_by_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def replaced_by_a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(b"OPSCOPE STATE\0\0\0" + bytes(100)),
        replaced_by_a_link,
        replaced_by_a_pipe,
        replaced_by_a_directory,
    ],
)
def test_an_unreadable_state_is_reported_and_counters_restart(
    place: Path, spoil: Callable[[Path], object]
) -> None:
    work(0, 1, dead(0)).write(place)
    first = agent(place)
    first.collect()
    first.close()
    spoil(place / "agent.state")
    work(0, 1, Process()).write(place)
    second = agent(place, clock_ns=lambda: 10**18)
    snapshot = second.collect()
    assert "counters restart from 0" in second.resumed
    assert calls(snapshot)["numpy::add"] == 1
    assert set(snapshot.created_unix_ns.tolist()) == {10**18}
    second.close()


def test_a_state_of_another_boot_or_limit_is_not_used(place: Path) -> None:
    work(0, 1, dead(0)).write(place)
    first = agent(place)
    first.collect()
    first.close()
    other_limit = agent(place, max_series=7)
    assert "its limit is 2000 series" in other_limit.resumed
    other_limit.close()
    path = place / "agent.state"
    path.write_bytes(encode(State.none(b"another boot....", 2000)))
    assert "before the last reboot" in agent(place).resumed


def test_nothing_is_written_where_nothing_has_changed(place: Path) -> None:
    work(0, 1, Process()).write(place)
    observer = agent(place)
    for _ in range(2):
        observer.collect()
    assert observer.collect().own.state_writes == {("written",): 1}


def test_two_agents_do_not_take_in_the_same_files(place: Path) -> None:
    first = agent(place)
    with pytest.raises(AgentError, match="another agent already collects the segments"):
        agent(place)
    first.close()
    agent(place).close()


def test_a_directory_that_others_may_write_is_no_place_for_a_state(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(AgentError, match=r"other users can write to it.*OPSCOPE_STATE"):
        agent(tmp_path)


def test_a_directory_that_was_removed_is_made_again(place: Path) -> None:
    observer = agent(place)
    work(0, 1, Process()).write(place)
    observer.collect()
    for path in place.iterdir():
        path.unlink()
    place.rmdir()
    assert calls(observer.collect())["numpy::add"] == 1
    assert (place / "agent.state").exists()


# ---- the format -------------------------------------------------------------------------------


def a_state(place: Path) -> bytes:
    place.chmod(0o700)
    populate(place)
    observer = agent(place)
    observer.collect()
    observer.close()
    return (place / "agent.state").read_bytes()


def test_a_state_reads_back_unchanged(tmp_path: Path) -> None:
    raw = a_state(tmp_path)
    assert encode(decode(raw)) == raw
    assert decode(raw).boot_id == own_boot_id()
    assert start_of("self")


@pytest.fixture(scope="module")
def raw_state(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return a_state(tmp_path_factory.mktemp("state"))


HEAD = struct.Struct("<16sIIQQ")


def refuses(raw: bytes) -> bool:
    try:
        decode(raw)
    except StateError:
        return True
    return False


@given(data=st.data())
def test_changed_bytes_are_noticed(raw_state: bytes, data: st.DataObject) -> None:
    raw = bytearray(raw_state)
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= data.draw(st.integers(1, 255))
    assert refuses(bytes(raw))


@given(data=st.data())
def test_bytes_with_a_good_checksum_are_checked_too(raw_state: bytes, data: st.DataObject) -> None:
    body = bytearray(raw_state[HEAD.size :])
    for _ in range(data.draw(st.integers(1, 6))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    text = HEAD.unpack_from(raw_state)[4]
    refuses(HEAD.pack(b"OPSCOPE STATE\0\0\0", 1, zlib.crc32(body), len(body), text) + body)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(data=st.data())
def test_other_facts_are_refused_or_taken_and_nothing_else(
    raw_state: bytes, data: st.DataObject
) -> None:
    *_, text_size = HEAD.unpack_from(raw_state)
    facts = json.loads(raw_state[HEAD.size : HEAD.size + text_size])
    facts[data.draw(st.sampled_from(sorted(facts)))] = data.draw(JSON)
    text = json.dumps(facts).encode()
    body = text + raw_state[HEAD.size + text_size :]
    head = HEAD.pack(b"OPSCOPE STATE\0\0\0", 1, zlib.crc32(body), len(body), len(text))
    refuses(head + body)
