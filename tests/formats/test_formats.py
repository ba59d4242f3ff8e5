"""Segments written by earlier versions are read, for ever, and say what they said then."""

import gzip
import json
from pathlib import Path
from typing import Any

from opscope.agent import layout
from opscope.agent.dictionary import Dictionary
from opscope.agent.segment import COLUMNS, read_header, read_segment

HERE = Path(__file__).parent
# What make_v1.py ran, on three threads.
CALLS = {"outer": 300, "inner": 300, "fails": 21, "Optimizer.step#SGD.step": 90, "a": 90}


def test_the_golden_segment_of_version_1_says_what_its_program_did() -> None:
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
