"""A state that is damaged in any way is refused, or is one that an agent goes on with."""

import copy
import json
import random
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from opscope.host.host import Host
from opscope.host.state import StateError, decode, encode
from opscope.host.state_file import StateFile
from tests.host.ended_jobs import EndedJobs
from tests.segments.segment_writer import Process, Range, SegmentWriter

HEAD = struct.Struct("<16sIIQQ")
MAGIC = b"OPSCOPE STATE\0\0\0"
START_NS = 1_700_000_000_000_000_000
ODD: tuple[Any, ...] = (
    None,
    -1,
    0,
    1.5,
    1 << 63,
    1 << 64,
    1e400,
    "",
    "/../x",
    "\ud800",
    [],
    {},
    [[]],
    True,
    [1, 2],
)


class Agent:
    """One after the other, with a clock of its own; every snapshot is exported at once."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._now_ns = START_NS

    def passes(self, count: int = 3) -> None:
        host = Host(
            [str(self._place)],
            consume=True,
            max_series=60,
            state=StateFile(str(self._place / "agent.state")),
            series_idle_s=0.0,
            exported=lambda now_ns: now_ns,
            clock_ns=lambda: self._now_ns,
        )
        try:
            for _ in range(count):
                self._now_ns += 10**10
                assert ("failed",) not in host.collect().bad_segments
        finally:
            host.close()


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    """Has left a state with ended processes, and with rows that moved between series."""
    tmp_path.chmod(0o700)
    made = Agent(tmp_path)
    for number in range(3):
        EndedJobs().write(tmp_path, number, START_NS)
    writers = [SegmentWriter(created_unix_ns=START_NS) for _ in range(2)]
    for number, writer in enumerate(writers):
        writer.note("service.name", f"service{number}")
        for _ in range(3):
            writer.add([Range(f"op{n}", 1e-3) for n in range(90)]).write(tmp_path)
            made.passes(2)
    facts, _ = taken_apart((tmp_path / "agent.state").read_bytes())
    (moved,) = facts["moved"].values()
    assert sum(len(one["stays"]) for one in moved.values()) > 0
    assert all(one["series"] for one in moved.values())
    return made


def taken_apart(raw: bytes) -> tuple[dict[str, Any], bytes]:
    *_, size = HEAD.unpack_from(raw)
    body = raw[HEAD.size :]
    return json.loads(body[:size]), body[size:]


def put_together(facts: Any, arrays: bytes) -> bytes:
    text = json.dumps(facts).encode()
    body = text + arrays
    return HEAD.pack(MAGIC, 1, zlib.crc32(body), len(body), len(text)) + body


def change(facts: Any, chosen: random.Random) -> None:
    """One value anywhere in it, to another number or to something odd."""
    while True:
        keys = [*facts] if isinstance(facts, dict) else [*range(len(facts))]
        key = chosen.choice(keys)
        inner = facts[key]
        if isinstance(inner, (dict, list)) and inner and chosen.random() < 0.9:
            facts = inner
            continue
        if isinstance(inner, int) and chosen.random() < 0.5:
            facts[key] = chosen.choice((inner + 1, inner - 1, 7 * inner, 0, 1 << 40))
        elif chosen.random() < 0.2:
            del facts[key]
        else:
            facts[key] = copy.deepcopy(chosen.choice(ODD))
        return


def test_facts_of_another_kind_are_refused_or_gone_on_with(agent: Agent, tmp_path: Path) -> None:
    path, chosen = tmp_path / "agent.state", random.Random(8)
    good, arrays = taken_apart(path.read_bytes())
    outcomes = {"refused": 0, "taken": 0}
    for number in range(400):
        facts = copy.deepcopy(good)
        # The rows that moved are most of it in number, and not in kinds.
        change(facts if number % 2 else facts[chosen.choice(("moved", "series"))], chosen)
        raw = put_together(facts, arrays)
        try:
            assert encode(decode(raw))
        except StateError:
            outcomes["refused"] += 1
            continue
        outcomes["taken"] += 1
        if number % 10 < 2:
            path.write_bytes(raw)
            agent.passes()
    assert min(outcomes.values()) > 20


def test_any_changed_byte_is_noticed(agent: Agent, tmp_path: Path) -> None:
    SegmentWriter(Process(process_start=1)).add([Range("op", 1e-3)]).write(tmp_path)
    raw = (tmp_path / "agent.state").read_bytes()
    # Each byte of the head, and some of what the checksum is of.
    for at in (*range(HEAD.size), *range(HEAD.size, len(raw), 499)):
        changed = bytearray(raw)
        changed[at] ^= 1 << at % 8
        with pytest.raises(StateError):
            decode(bytes(changed))
    for size in (*range(HEAD.size + 2), *range(HEAD.size, len(raw), 997)):
        with pytest.raises(StateError):
            decode(raw[:size])
