"""Segments written by earlier versions can be read, with the same contents as at that time."""

import gzip
import json
from pathlib import Path
from typing import Any

from opscope.host.host import Host
from opscope.host.state_file import StateFile
from opscope.segments import layout
from opscope.segments.dictionary import Dictionary
from opscope.segments.segment import COLUMNS, read_header, read_segment

HERE = Path(__file__).parent
# The calls of make_v1.py, on three threads.
CALLS = {"outer": 300, "inner": 300, "fails": 21, "Optimizer.step#SGD.step": 90, "a": 90}


def test_the_golden_segment_of_version_1_has_its_programs_counts() -> None:
    raw = gzip.decompress((HERE / "v1.seg.gz").read_bytes())
    told = json.loads((HERE / "v1.json").read_text())

    def read(offset: int, size: int) -> bytes:
        return raw[offset : offset + size]

    header = read_header(read)
    segment = read_segment(read, header, Dictionary())
    rows, dictionary = segment.rows, segment.dictionary
    assert header.ticks_per_second == told["ticks_per_second"]
    assert header.state == layout.CLOSED
    assert (dictionary.notes["program"], dictionary.notes["service.name"]) == (
        "golden.py",
        "golden",
    )
    assert list(dictionary.usage) == ["golden.api"]

    found: dict[str, dict[str, Any]] = {}
    for row, key in enumerate(rows.keys.tolist()):
        buckets: dict[str, int] = {}
        for at in (rows.bucket_row == row).nonzero()[0]:
            base = (int(rows.bucket_octave[at]) - layout.SECOND_LOG2) * layout.BUCKETS_PER_OCTAVE
            weights = rows.bucket_weights[at].tolist()
            buckets |= {str(base + k): weight for k, weight in enumerate(weights) if weight}
        labels = [text for pair in dictionary.labels[key >> 40] for text in pair]
        op, phase = dictionary.ops[key & 0xFFFFFFFF], key >> 32 & 0xFF
        found[op] = {
            "op": op,
            "phase": phase,
            "labels": labels,
            "values": rows.values[row].tolist(),
            "buckets": buckets,
        }
    assert found == {row["op"]: row for row in told["rows"]}

    samples, weight = COLUMNS.index("sample_count"), COLUMNS.index("weight")
    assert {op: row["values"][samples] for op, row in found.items()} == CALLS
    for op, cell in found.items():
        assert cell["values"][weight] == CALLS[op] * layout.WEIGHT_ONE
        assert sum(cell["buckets"].values()) == cell["values"][weight]
    assert found["fails"]["values"][COLUMNS.index("error_weight")] == 21 * layout.WEIGHT_ONE
    assert found["a"]["labels"] == ["model_id", "größe"]
    optimizer = layout.PHASES.index("optimizer")
    assert (found["Optimizer.step#SGD.step"]["phase"], found["a"]["phase"]) == (optimizer,) * 2


def test_an_agent_takes_in_an_old_segment_once(tmp_path: Path) -> None:
    raw = gzip.decompress((HERE / "v1.seg.gz").read_bytes())
    header = read_header(lambda offset, size: raw[offset : offset + size])
    tmp_path.chmod(0o700)
    random = int.from_bytes(header.random_id[:8], "little")
    path = tmp_path / f"{header.pid}-{header.process_start}-{random:016x}.seg"
    path.write_bytes(raw)
    for _ in range(2):
        host = Host([str(tmp_path)], consume=True, state=StateFile(str(tmp_path / "agent.state")))
        snapshot = host.collect()
        found = {key.op: int(n) for key, n in zip(snapshot.keys, snapshot.samples, strict=True)}
        assert found == CALLS
        assert [found.name for found in tmp_path.iterdir()] == ["agent.state"]
        host.close()
