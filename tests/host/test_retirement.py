"""Series of ended jobs become free for others, without a lost or repeated count; services stay
visible."""

import json
import os
import struct
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opscope.host.host import Host
from opscope.host.retirement import _chosen
from opscope.host.series_table import SeriesTable
from opscope.host.snapshot import SELF_NS, SeriesKey, Snapshot
from opscope.host.state import decode
from opscope.host.state_file import StateFile
from opscope.server.live import Live
from tests.host.ended_jobs import CALLS_OF_A_JOB, OPS, EndedJobs
from tests.segments.segment_writer import Process, Range, SegmentWriter

START_NS = 1_700_000_000_000_000_000
JOBS_A_DAY, MINUTES = 10_000, 24 * 60
STEP = 2
"""Minutes from one pass to the next, which saves half of the time."""
HEAD = struct.Struct("<16sIIQQ")

pytestmark = pytest.mark.usefixtures("unhurried")


class Agent:
    """A host with its own clock; every snapshot is exported unless a test says otherwise."""

    def __init__(self, place: Path, max_series: int, **options: Any) -> None:
        self.now_ns = START_NS
        self.is_exporting = True
        self._exported_ns = 0
        self._place = place
        self._options = options
        self._max_series = max_series
        self.host = self._host()

    def _host(self) -> Host:
        return Host(
            [str(self._place)],
            consume=True,
            max_series=self._max_series,
            state=StateFile(str(self._place / "agent.state")),
            exported=lambda _: self._exported_ns,
            clock_ns=lambda: self.now_ns,
            **self._options,
        )

    def restart(self) -> None:
        self.host.close()
        self.host = self._host()

    def after(self, seconds: float) -> Snapshot:
        """The snapshot so many seconds later."""
        self.now_ns += round(seconds * 1e9)
        snapshot = self.host.collect()
        if self.is_exporting:
            self._exported_ns = snapshot.time_unix_ns
        return snapshot


def living(place: Path, service: str) -> Callable[[int], None]:
    """Writes the segment of a live process with so many calls more."""
    writer = SegmentWriter(created_unix_ns=START_NS)
    writer.note("service.name", service)

    def work(calls: int) -> None:
        writer.add([Range("serve", 1e-3, calls, self_s=1e-3)]).write(place)

    return work


def hog(place: Path, count: int) -> None:
    """A live process that runs so many operators."""
    writer = SegmentWriter(created_unix_ns=START_NS)
    writer.note("service.name", "hog")
    writer.add(Range(f"hog::{n}", 1e-3) for n in range(count)).write(place)


def calls(snapshot: Snapshot) -> dict[SeriesKey, float]:
    return dict(zip(snapshot.keys, snapshot.calls.tolist(), strict=True))


def by_service(snapshot: Snapshot) -> Counter[str]:
    found: Counter[str] = Counter()
    for key, value in calls(snapshot).items():
        found[key.service] += int(value)
    return found


class Follower:
    """Compares each snapshot with the previous one, as a store of metrics could."""

    def __init__(self) -> None:
        self._last: Snapshot | None = None
        self.increase = 0
        """Of all series, from one snapshot to the next, as a store of them counts it."""
        self.counted = 0
        """Calls that were in the first snapshot of a series, which no increase has."""

    def take(self, snapshot: Snapshot) -> None:
        last = self._last
        known = {} if last is None else {key: row for row, key in enumerate(last.keys)}
        for row, key in enumerate(snapshot.keys):
            now, then = snapshot.counters[row].astype(np.int64), known.get(key)
            if last is None or then is None:
                self.counted += 0 if key.is_retired else int(now[1]) >> 16
                continue
            before = last.counters[then].astype(np.int64)
            is_new = snapshot.created_unix_ns[row] != last.created_unix_ns[then]
            assert is_new or (now >= before).all(), key
            if is_new:
                assert snapshot.created_unix_ns[row] > last.created_unix_ns[then]
                self.counted += int(now[1]) >> 16
            else:
                assert not key.is_retired or (now == before).all(), key
                self.increase += int(now[1] - before[1]) >> 16
        self._last = snapshot


@pytest.mark.slow
def test_a_day_of_ten_thousand_ended_jobs_fits_and_shows_every_living_service(place: Path) -> None:
    agent = Agent(place, max_series=200)
    jobs, follower = EndedJobs(), Follower()
    services = [f"server{n}" for n in range(5)]
    work = [living(place, service) for service in services]
    truth: Counter[str] = Counter()
    state_bytes = []
    done = shown = 0
    for minute in range(STEP, MINUTES + 1, STEP):
        due = JOBS_A_DAY * minute // MINUTES
        for number in range(done, due):
            jobs.write(place, number, agent.now_ns)
            truth[f"job{number:08}"] += CALLS_OF_A_JOB
        for service, one in zip(services, work, strict=True):
            one(minute % 7)
            truth[service] += minute % 7
        snapshot = agent.after(60 * STEP)
        follower.take(snapshot)
        found = by_service(snapshot)
        assert len(snapshot.keys) <= 201
        assert sum(found.values()) == sum(truth.values()) == int(snapshot.calls.sum())
        assert snapshot.counters.sum(axis=0)[0] == sum(truth.values())
        assert snapshot.buckets.sum() >> 16 == sum(truth.values())
        own = [key for key in snapshot.keys if key.op != "other"]
        for service in services:
            assert found[service] == truth[service]
            assert service in {key.service for key in own}
        # A job that has just run has series of its own, one per operator.
        shown += sum(
            all(SeriesKey(f"job{n:08}", op, "forward", ()) in snapshot.keys for op in OPS)
            for n in range(done, due)
        )
        done = due
        if minute % 200 == 0:
            agent.restart()
        state_bytes.append(os.stat(place / "agent.state").st_size)
    assert shown == JOBS_A_DAY
    # Retired counts are in no later increase.
    assert follower.increase + follower.counted == sum(truth.values())
    assert agent.after(1).series_folded == 0
    assert max(state_bytes[len(state_bytes) // 2 :]) <= 1.05 * max(
        state_bytes[: len(state_bytes) // 2]
    )
    assert [path.name for path in place.iterdir() if path.suffix != ".seg"] == ["agent.state"]


def test_a_service_keeps_its_name_when_its_series_are_retired(place: Path) -> None:
    agent = Agent(place, max_series=160)
    jobs = EndedJobs()
    for number in range(40):
        jobs.write(place, number, agent.now_ns)
    before = by_service(agent.after(1))
    retired = agent.after(121)
    assert retired.series_retired > 0
    found = [key for key in retired.keys if key.is_retired]
    assert {key.op for key in found} == {"other"}
    by_name = [key.service for key in found if key.service != "other"]
    assert len(by_name) == 10
    after = by_service(retired)
    for service in by_name:
        assert after[service] == before[service] == CALLS_OF_A_JOB
    assert sum(after.values()) == sum(before.values())


def test_a_series_is_retired_only_once_it_was_exported(place: Path) -> None:
    agent = Agent(place, max_series=16)
    agent.is_exporting = False
    for number in range(5):
        EndedJobs().write(place, number, agent.now_ns)
    agent.after(1)
    assert agent.after(1000).series_retired == 0
    agent.is_exporting = True
    assert agent.after(1).series_retired == 0
    assert agent.after(1).series_retired > 0


def test_a_series_is_retired_only_once_it_has_not_moved_for_a_time(place: Path) -> None:
    agent = Agent(place, max_series=16, series_idle_s=30)
    for number in range(5):
        EndedJobs().write(place, number, agent.now_ns)
    agent.after(1)
    assert agent.after(29).series_retired == 0
    assert agent.after(1).series_retired > 0


def test_a_series_that_a_live_process_counts_under_stays(place: Path) -> None:
    agent = Agent(place, max_series=16)
    work = living(place, "job00000000")
    work(1)
    writer = SegmentWriter(created_unix_ns=START_NS)
    writer.note("service.name", "job00000001")
    writer.add([Range(OPS[0], 1e-3)]).write(place)
    agent.after(1)  # Before others take all places: files are read in any order.
    jobs = EndedJobs()
    for number in range(5):
        jobs.write(place, number, agent.now_ns)
    agent.after(1)
    after = agent.after(200)
    assert after.series_retired > 0
    assert calls(after)[SeriesKey("job00000000", "serve", "forward", ())] == 1
    assert calls(after)[SeriesKey("job00000001", OPS[0], "forward", ())] == 2


def test_nothing_is_retired_while_there_is_room(place: Path) -> None:
    agent = Agent(place, max_series=2000)
    for number in range(100):
        EndedJobs().write(place, number, agent.now_ns)
    agent.after(1)
    assert agent.after(10**6).series_retired == 0


def test_a_series_that_comes_back_began_after_it_was_retired(place: Path) -> None:
    agent = Agent(place, max_series=16)
    jobs, follower = EndedJobs(), Follower()
    for number in range(5):
        jobs.write(place, number, START_NS)
    before = agent.after(1)
    follower.take(before)
    follower.take(agent.after(200))
    retired_ns = agent.now_ns
    key = next(key for key in before.keys if key not in agent.after(0).keys)
    writer = SegmentWriter(Process(process_start=77), created_unix_ns=START_NS)
    writer.note("service.name", key.service)
    writer.add([Range(key.op, 1e-3, 50)]).write(place)
    after = agent.after(1)
    follower.take(after)
    row = after.keys.index(key)
    assert after.calls[row] == 50
    assert after.created_unix_ns[row] == retired_ns
    agent.restart()
    assert agent.after(1).created_unix_ns[agent.after(0).keys.index(key)] == retired_ns


def test_self_time_that_was_known_stays_in_the_sum_over_a_service(place: Path) -> None:
    agent = Agent(place, max_series=8)
    writer = SegmentWriter(Process(process_start=1), created_unix_ns=START_NS)
    writer.note("service.name", "job")
    writer.add([Range(f"known{n}", 1.0, 2, self_s=0.25) for n in range(6)])
    writer.add([Range("unknown", 3.0)]).write(place)
    before = agent.after(1)
    after = agent.after(200)
    assert after.series_retired > 0
    assert np.nansum(after.self_s) == np.nansum(before.self_s) == 3.0
    assert after.counters[:, SELF_NS].sum() >= 3 * 10**9


def test_a_late_service_on_a_full_host_shows_its_operators(place: Path) -> None:
    agent = Agent(place, max_series=200)
    hog(place, 1000)
    agent.after(1)
    for number in range(3):
        writer = SegmentWriter(created_unix_ns=START_NS)
        writer.note("service.name", f"late{number}")
        writer.add(Range(f"late::{n}", 1e-3) for n in range(5)).write(place)
    found = calls(agent.after(1))
    for number in range(3):
        ops = {key.op for key in found if key.service == f"late{number}"}
        assert ops >= {"late::0", "late::1"}, number
    assert sum(found.values()) == 1000 + 3 * 5


def test_a_late_service_keeps_its_name_without_free_places(place: Path) -> None:
    agent = Agent(place, max_series=400)
    for number in range(60):
        writer = SegmentWriter(created_unix_ns=START_NS)
        writer.note("service.name", f"service{number}")
        writer.add(Range(f"op{n}", 1e-3) for n in range(20)).write(place)
    snapshot = agent.after(1)
    assert set(by_service(snapshot)) == {f"service{n}" for n in range(60)}
    assert set(by_service(snapshot).values()) == {20}
    assert len(snapshot.keys) <= 400
    own = sum(key.op != "other" for key in snapshot.keys)
    assert snapshot.series_folded == 60 * 20 - own


def test_beyond_a_bounded_number_of_services_all_is_one_other(place: Path) -> None:
    agent = Agent(place, max_series=200)
    for number in range(400):
        writer = SegmentWriter(created_unix_ns=START_NS)
        writer.note("service.name", f"service{number}")
        writer.add([Range("op", 1e-3)]).write(place)
    snapshot = agent.after(1)
    assert len(snapshot.keys) == 201
    assert by_service(snapshot)["other"] == 400 - 200
    assert sum(by_service(snapshot).values()) == 400


def test_no_user_takes_all_places() -> None:
    table = SeriesTable(2000)
    for service in range(100):
        for op in range(100):
            table.number(SeriesKey(f"service{service}", f"op{op}", "forward", ()), 1, user=1000)
    taken = sum(key is not None and key.op != "other" for key in table.keys)
    assert taken < table.own_limit
    for op in range(20):
        key = SeriesKey("of somebody else", f"op{op}", "forward", ())
        assert table.keys[table.number(key, 1, user=1001)] == key


def chosen_by_user(kept: dict[int, int], limit: int = 160) -> Counter[int]:
    """The number of retired series of each user; those of the later users ended first."""
    table = SeriesTable(limit)
    now_ns = 10**12
    for user, count in kept.items():
        for op in range(count):
            key = SeriesKey(f"of {user}", f"op{op}", "forward", ())
            number = table.add(key, 1, user)
            table.ended_unix_ns[number] = now_ns - user
    chosen = _chosen(table, table.rows)
    return Counter(table.users[number] for number in chosen)


def test_series_of_who_has_most_are_retired_first() -> None:
    assert chosen_by_user({1: 100, 2: 30}) == {1: 50}
    # Down to the number that the others have, then equally from each.
    assert chosen_by_user({1: 100, 2: 30, 3: 30}) == {1: 74, 2: 3, 3: 3}
    assert chosen_by_user({1: 130}) == {1: 50}


def test_shares_are_given_back_with_the_places() -> None:
    table = SeriesTable(64)
    keys = [SeriesKey("service", f"op{n}", "forward", ()) for n in range(200)]
    first = {table.number(key, 1, user=7) for key in keys}
    own = [number for number in first if table.keys[number] in keys]
    for number in own:
        table.remove(number)
    assert len(table) == 1
    again = {table.number(key, 1, user=7) for key in keys[::-1]}
    assert sum(table.keys[number] in keys for number in again) == len(own)


def test_an_earlier_agents_state_is_read(place: Path) -> None:
    """The state has no owner and no end time of series."""
    agent = Agent(place, max_series=200)
    for number in range(60):
        EndedJobs().write(place, number, agent.now_ns)
    before = agent.after(1)
    agent.host.close()
    path = place / "agent.state"
    raw = path.read_bytes()
    *_, text_size = HEAD.unpack_from(raw)
    facts = json.loads(raw[HEAD.size : HEAD.size + text_size])
    del facts["users"], facts["ended_unix_ns"]
    text = json.dumps(facts).encode()
    body = text + raw[HEAD.size + text_size :]
    head = HEAD.pack(b"OPSCOPE STATE\0\0\0", 1, zlib.crc32(body), len(body), len(text))
    path.write_bytes(head + body)
    assert decode(head + body).tables.series.users == [0] * len(before.keys)
    agent.restart()
    assert calls(agent.after(1)) == calls(before)
    agent.after(1)
    after = agent.after(300)
    assert after.series_retired > 0
    assert after.calls.sum() == before.calls.sum()


def test_the_page_shows_no_rates_of_retired_series(place: Path) -> None:
    agent = Agent(place, max_series=16)
    work = living(place, "server")
    work(1)
    agent.after(1)  # Before others take all places: files are read in any order.
    for number in range(5):
        EndedJobs().write(place, number, agent.now_ns)
    live = Live(lambda: agent.after(0), lambda _: (), clock=lambda: agent.now_ns / 1e9)
    shown = []
    for _ in range(40):
        work(10)
        agent.now_ns += 5 * 10**9
        shown.append(json.loads(live.answer()))
    assert agent.after(1).series_retired > 0
    for one in shown[1:]:
        assert {row["operator"] for row in one["operators"]} <= {"serve"}
        assert one["calls_per_s"] <= 2.1
