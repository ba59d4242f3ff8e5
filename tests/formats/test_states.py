"""The agent continues from states that agents of earlier commits wrote (make_state.py), with their
numbers."""

import gzip
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from opscope.host.host import Host
from opscope.host.snapshot import Snapshot
from opscope.host.state import decode, encode
from opscope.host.state_file import NAME, StateFile
from opscope.segments import liveness
from opscope.segments.liveness import Here

HERE = Path(__file__).parent
HEAD = struct.Struct("<16sIIQQ")
GOLDEN = sorted(HERE.glob("state-*.gz"))
LAST_RELEASE = HERE / "state-7baa251.gz"


def told_by(golden: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(golden.with_suffix(".json").read_text())
    return told


def moved(raw: bytes, old: str, new: str) -> bytes:
    """The state, of a directory of segments with another name."""
    magic, version, _, _, text_size = HEAD.unpack_from(raw)
    text, arrays = raw[HEAD.size :][:text_size], raw[HEAD.size + text_size :]
    text = text.replace(json.dumps(old).encode(), json.dumps(new).encode())
    body = text + arrays
    return HEAD.pack(magic, version, zlib.crc32(body), len(body), len(text)) + body


def facts(snapshot: Snapshot) -> dict[str, Any]:
    return {
        "series": [
            [key.service, key.op, key.phase, [list(pair) for pair in key.labels]]
            for key in snapshot.keys
        ],
        "counters": snapshot.counters.tolist(),
        "buckets": [int(line.sum()) for line in snapshot.buckets],
        "created_unix_ns": snapshot.created_unix_ns.tolist(),
    }


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.stem)
def test_an_earlier_agents_state_continues_and_its_files_are_only_removed(
    golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = told_by(golden)
    tmp_path.chmod(0o700)
    raw = moved(gzip.decompress(golden.read_bytes()), told["directory"], str(tmp_path))
    (tmp_path / NAME).write_bytes(raw)
    for name in told["taken"]:
        (tmp_path / name).write_bytes(b"counted before")
    here = Here(decode(raw).boot_id, 1)
    monkeypatch.setattr(liveness, "here", lambda: here)
    host = Host([str(tmp_path)], consume=True, state=StateFile(str(tmp_path / NAME)))
    assert host.goes_on
    snapshot = host.collect()
    assert facts(snapshot) == {name: told[name] for name in facts(snapshot)}
    assert snapshot.bad_segments == {}
    assert [path.name for path in tmp_path.iterdir()] == [NAME]
    host.close()


def parts(raw: bytes) -> tuple[int, dict[str, Any], bytes]:
    """Version, facts and arrays."""
    _, version, _, _, text_size = HEAD.unpack_from(raw)
    text, arrays = raw[HEAD.size :][:text_size], raw[HEAD.size + text_size :]
    return version, json.loads(text), arrays


def test_the_agent_of_the_last_release_reads_current_states() -> None:
    """Reads its version and facts before any arrays."""
    raw = gzip.decompress(LAST_RELEASE.read_bytes())
    version, facts, arrays = parts(raw)
    now_version, now_facts, now_arrays = parts(encode(decode(raw)))
    assert now_version == version
    assert {name: now_facts[name] for name in facts} == facts
    assert now_arrays.startswith(arrays)


def test_additions_of_a_later_agent_are_ignored() -> None:
    raw = gzip.decompress(LAST_RELEASE.read_bytes())
    version, facts, arrays = parts(raw)
    text, more = json.dumps({**facts, "later": [1]}).encode(), arrays + bytes(64)
    head = HEAD.pack(raw[:16], version, zlib.crc32(text + more), len(text + more), len(text))
    assert encode(decode(head + text + more)) == encode(decode(raw))


def test_there_are_states_of_several_commits() -> None:
    assert len(GOLDEN) >= 2
