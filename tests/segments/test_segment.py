"""The parser returns a segment's contents as they were written, by C or by the tests' writer."""

import os
from pathlib import Path

import numpy as np
import pytest

from opscope.host.totals import _ns
from opscope.segments import layout
from opscope.segments.dictionary import Dictionary
from opscope.segments.segment import COLUMNS, Segment, read_header, read_segment
from opscope.segments.segment_file import Reader, SegmentError, opened
from tests.segments.segment_writer import Range, SegmentWriter


def reader(raw: bytes) -> Reader:
    return lambda offset, size: raw[offset : offset + size]


def parse(raw: bytes, dictionary: Dictionary | None = None) -> Segment:
    read = reader(raw)
    return read_segment(read, read_header(read), dictionary or Dictionary())


def row_of(segment: Segment, op: str) -> dict[str, int]:
    ids = {name: number for number, name in segment.dictionary.ops.items()}
    (row,) = np.flatnonzero((segment.rows.keys & np.uint64(0xFFFFFFFF)) == ids[op])
    return dict(zip(COLUMNS, segment.rows.values[row].tolist(), strict=True))


def test_counters_are_those_written() -> None:
    writer = SegmentWriter().add(
        [Range("numpy::add", 1e-3, 5, self_s=4e-4), Range("numpy::add", 2e-3, failed=True, bytes=8)]
    )
    assert row_of(parse(writer.to_bytes()), "numpy::add") == {
        "sample_count": 6,
        "weight": 6 << 16,
        "whole_ticks": 5_000_000,
        "total_ticks": 7_000_000,
        "self_ticks": 2_000_000,
        "error_weight": 1 << 16,
        "bytes": 8,
    }


def test_recording_cost_what_its_operators_ranges_do() -> None:
    writer = SegmentWriter(record_cost_ps=25_001)
    dear = writer.op_id("aten::mm", extra_cost_ps=131_313)
    assert parse(writer.to_bytes()).overhead_ns == 0
    writer.add([Range("numpy::add", 1e-3, 7), Range("aten::mm", 1e-3, 5)])
    writer.add([Range("aten::mm", 1e-6, 3, table=1), Range("aten::mm", 1e-6, 1, 9.0, phase=2)])
    segment = parse(writer.to_bytes())
    assert segment.dictionary.extra_costs_ps == {dear: 131_313}
    assert segment.overhead_ns == (16 * 25_001 + 9 * 131_313) // 1000


def test_the_cost_follows_operators_that_come_later() -> None:
    writer = SegmentWriter(record_cost_ps=1000).add([Range("a", 1e-3, 2)])
    dictionary = Dictionary()
    assert parse(writer.to_bytes(), dictionary).overhead_ns == 2
    writer.op_id("b", extra_cost_ps=4000)
    writer.add([Range("b", 1e-3, 10)])
    assert parse(writer.to_bytes(), dictionary).overhead_ns == 12 + 40


def test_a_cost_beyond_all_measure_is_damage() -> None:
    writer = SegmentWriter()
    writer.op_id("a", extra_cost_ps=0xFFFFFFFF)
    writer.add([Range("a", 1e-3, 1 << 40, 2.0**-20)])
    with pytest.raises(SegmentError, match="impossibly large costs"):
        parse(writer.to_bytes())


def test_tables_are_summed() -> None:
    ranges = [Range("core::mm", 1e-6 * (1 + n % 7), 3, 2.5, table=n % 5) for n in range(40)]
    segment = parse(SegmentWriter().add(ranges).to_bytes())
    assert len(segment.rows.keys) == 1
    assert row_of(segment, "core::mm")["weight"] == 40 * 3 * 2.5 * layout.WEIGHT_ONE
    assert int(segment.rows.bucket_weights.sum()) == 40 * 3 * 2.5 * layout.WEIGHT_ONE


def test_more_cells_lines_and_names_than_a_chunk_holds() -> None:
    ops = [f"numpy::operator_{n}_{'x' * 40}" for n in range(400)]
    ranges = [Range(op, 2.0**-octave, n + 1) for n, op in enumerate(ops) for octave in (5, 9, 20)]
    segment = parse(SegmentWriter().add(ranges).to_bytes())
    assert len(segment.rows.keys) == 400
    assert segment.header.chunk_count > 8
    for n, op in enumerate(ops):
        assert row_of(segment, op)["sample_count"] == 3 * (n + 1)


def test_bucket_of_a_row_is_that_of_its_durations() -> None:
    segment = parse(SegmentWriter().add([Range("a", 3e-3, 2), Range("b", 7.0, 4)]).to_bytes())
    rows = segment.rows
    found = {
        segment.dictionary.ops[int(rows.keys[row]) & 0xFFFFFFFF]: (
            (int(octave) - 40) * 8 + int(np.flatnonzero(weights)[0]),
            int(weights.sum()) >> 16,
        )
        for row, octave, weights in zip(
            rows.bucket_row, rows.bucket_octave, rows.bucket_weights, strict=True
        )
    }
    assert found["a"][1] == 2
    assert found["b"][1] == 4
    assert 2 ** (found["a"][0] / 8) <= 3e-3 < 2 ** ((found["a"][0] + 1) / 8)
    assert 2 ** (found["b"][0] / 8) <= 7.0 < 2 ** ((found["b"][0] + 1) / 8)


def test_labels_usage_and_the_last_note_of_a_key() -> None:
    writer = SegmentWriter().add([Range("a", 1.0, labels=(("model_id", "resnet"),))])
    writer.usage("core.linalg")
    writer.notes({"bridge.numpy": "waiting"})
    writer.note("bridge.numpy", "attached")
    segment = parse(writer.to_bytes())
    assert segment.dictionary.labels[int(segment.rows.keys[0]) >> 40] == (("model_id", "resnet"),)
    assert list(segment.dictionary.usage) == ["core.linalg"]
    assert segment.dictionary.notes == {"bridge.numpy": "attached"}


def test_a_dictionary_is_read_on_from_where_it_ended() -> None:
    writer = SegmentWriter().add([Range("a", 1.0)])
    dictionary = Dictionary()
    parse(writer.to_bytes(), dictionary)
    read = dictionary.read_bytes.copy()
    writer.add([Range("b", 1.0)])
    parse(writer.to_bytes(), dictionary)
    assert set(dictionary.ops.values()) == {"other", "a", "b"}
    assert dictionary.read_bytes[0] > read[0]


def test_a_second_read_equals_a_first_one() -> None:
    random = np.random.default_rng(1)
    writer, dictionary = SegmentWriter(), Dictionary()
    shapes = set()
    for _ in range(150):
        spread = int(random.integers(1, 8))  # few: most of the earlier ones are reused
        writer.add(
            [
                Range(f"op_{n % spread}", 2.0 ** -int(n % (2 * spread)), table=int(n % spread) // 2)
                for n in random.integers(0, 100, 3)
            ]
        )
        again, anew = parse(writer.to_bytes(), dictionary), parse(writer.to_bytes())
        for found, wanted in zip(again.rows, anew.rows, strict=True):
            assert np.asarray(found).tolist() == np.asarray(wanted).tolist()
        shapes.add(id(again.rows.buckets))
    assert 1 < len(shapes) < 100


def test_a_second_read_asks_once_for_what_has_not_grown() -> None:
    writer = SegmentWriter().add([Range("a", 1.0), Range("b", 0.1)])
    raw, dictionary = writer.to_bytes(), Dictionary()
    read: list[int] = []

    def reader(offset: int, size: int) -> bytes:
        read.append(offset)
        return raw[offset : offset + size]

    for _ in range(2):
        read.clear()
        read_segment(reader, read_header(reader), dictionary)
    header = read_header(reader)
    read.clear()
    found = read_segment(reader, header, dictionary)
    assert len(read) == 1 + header.chunk_count  # the header anew, and each chunk
    assert found.rows.values[:, 0].tolist() == [1, 1]


def test_text_cannot_steer_a_terminal_or_fill_a_page() -> None:
    writer = SegmentWriter().add([Range("evil\x1b[2J", 1.0), Range("long" * 1000, 1.0)])
    names = list(parse(writer.to_bytes()).dictionary.ops.values())
    assert "evil?[2J" in names
    assert max(map(len, names)) <= 256


def test_an_overload_follows_a_dot() -> None:
    writer = SegmentWriter()
    writer.entry(layout.ENTRY_OP, 9, "aten::add", "Tensor")
    assert parse(writer.to_bytes()).dictionary.ops[9] == "aten::add.Tensor"


def test_kinds_of_entries_from_a_later_version_are_skipped() -> None:
    writer = SegmentWriter()
    writer.entry(77, 1, "what", "is", "this")
    writer.note("program", "x")
    assert parse(writer.to_bytes()).dictionary.notes == {"program": "x"}


def test_ticks_become_nanoseconds() -> None:
    assert _ns(np.array([0, 3, 3_000_000_000], np.uint64), 3_000_000_000).tolist() == [
        0,
        1,
        1_000_000_000,
    ]


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("magic", b"NOSCOPE\0", "magic"),
        ("version", 2, "version"),
        ("state", 0, "unfinished"),
        ("state", 7, "corrupt"),
        ("chunk_bytes", 8192, "corrupt"),
        ("chunk_limit", 1 << 31, "corrupt"),
        ("chunk_count", 1024, "corrupt"),
        ("chunk_count", 1000, "truncated"),
        ("ticks_per_second", 0, "corrupt"),
        ("clock_source", 9, "corrupt"),
    ],
)
def test_a_bad_header_is_named(field: str, value: int | bytes, reason: str) -> None:
    writer = SegmentWriter()
    writer.header[field] = value
    with pytest.raises(SegmentError) as error:
        parse(writer.to_bytes())
    assert error.value.reason == reason


def test_an_empty_and_a_short_file_are_named() -> None:
    raw = SegmentWriter().add([Range("a", 1.0)]).to_bytes()
    for part, reason in (
        (b"", "empty"),
        (raw[:100], "truncated"),
        (raw[: -layout.CHUNK_BYTES], "truncated"),
    ):
        with pytest.raises(SegmentError) as error:
            parse(part)
        assert error.value.reason == reason


def test_a_line_that_is_not_there_is_corruption() -> None:
    writer = SegmentWriter().add([Range("a", 1.0)])
    (cell,) = writer._cells[0].values()
    cell["octave_line"][0][40] = 300
    with pytest.raises(SegmentError, match="line"):
        parse(writer.to_bytes())


def test_a_chunk_that_uses_more_than_it_has_is_corruption() -> None:
    raw = bytearray(SegmentWriter().add([Range("a", 1.0)]).to_bytes())
    start = raw.index(layout.CELLS.to_bytes(4, "little"), layout.HEADER_BYTES + layout.CHUNK_BYTES)
    raw[start + 12 : start + 16] = (layout.CELLS_PER_CHUNK + 1).to_bytes(4, "little")
    with pytest.raises(SegmentError, match="more bytes than it has"):
        parse(bytes(raw))


def test_counters_that_would_make_sums_overflow_are_corruption() -> None:
    writer = SegmentWriter().add([Range("a", 1.0)])
    (cell,) = writer._cells[0].values()
    cell["total_ticks"] = 1 << 63
    with pytest.raises(SegmentError, match="impossibly large"):
        parse(writer.to_bytes())


@pytest.mark.parametrize("shift", [0, 32, 40])
def test_a_cell_of_something_unknown_is_corruption(shift: int) -> None:
    writer = SegmentWriter().add([Range("a", 1.0)])
    (cell,) = writer._cells[0].values()
    cell["key"] += np.uint64(77 << shift)
    with pytest.raises(SegmentError, match="unknown"):
        parse(writer.to_bytes())


def opened_reason(path: Path) -> str:
    fd = os.open(path.parent, os.O_RDONLY)
    try:
        with pytest.raises(SegmentError) as error, opened(path.name, fd):
            pass
        return error.value.reason
    finally:
        os.close(fd)


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"x")
    (tmp_path / "link").symlink_to("target")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "directory").mkdir()
    for name in ("link", "fifo", "directory"):
        assert opened_reason(tmp_path / name) == "not-a-file"


def test_a_file_larger_than_any_segment_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.touch()
    os.truncate(path, 1 << 40)
    assert opened_reason(path) == "oversized"
