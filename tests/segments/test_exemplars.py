"""Exemplars from a foreign process: incomplete or unknown ones are left out."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from opscope.host import exemplars
from opscope.host.snapshot import Exemplar
from opscope.segments import exemplar_entries, layout

RATE, ANCHOR_TICKS, ANCHOR_NS = 10**9, 1000, 1_700_000_000_000_000_000


def entry(key: int, ticks: int, end_ticks: int, number: int) -> bytes:
    """As native/recorder/exemplar.c writes it."""
    made = np.zeros(1, layout.EXEMPLAR)
    made["key"], made["ticks"], made["end_ticks"] = key, ticks, end_ticks
    made["trace_id"] = np.frombuffer(number.to_bytes(16, "big"), np.uint8)
    made["span_id"] = np.frombuffer(number.to_bytes(8, "big"), np.uint8)
    check = layout.EXEMPLAR_SEED
    for word in np.frombuffer(made.tobytes(), "<u8")[:-1].tolist():
        check = (check ^ word) * layout.EXEMPLAR_FACTOR % 2**64
    made["check"] = check
    return made.tobytes()


def read(raw: bytes) -> dict[int, tuple[Exemplar, ...]]:
    keys, series = np.array([7, 8], np.uint64), np.array([1, 0], np.intp)
    whole = exemplar_entries.whole(raw)
    found = exemplars.of_series(whole, keys, series, RATE, ANCHOR_TICKS, ANCHOR_NS)
    return exemplars.newest(found)


def test_an_entry_is_read_as_it_was_written() -> None:
    assert read(entry(7, 2_000_000, ANCHOR_TICKS + 5, 255)) == {
        1: (Exemplar(2e-3, ANCHOR_NS + 5, "0" * 30 + "ff", "0" * 14 + "ff"),)
    }


def test_entries_of_unknown_series_or_time_are_left_out() -> None:
    assert read(entry(9, 1, ANCHOR_TICKS + 5, 1) + entry(7, 1, ANCHOR_TICKS - 1, 1)) == {}


def test_the_newest_are_kept_in_order() -> None:
    raw = b"".join(entry(8, 1, ANCHOR_TICKS + at, at) for at in (9, 3, 7, 5, 1, 8))
    (found,) = read(raw).values()
    assert [int(one.span_id, 16) for one in found] == [5, 7, 8, 9]


@given(st.integers(0, 63), st.integers(1, 255))
def test_an_entry_with_any_byte_changed_is_left_out(at: int, change: int) -> None:
    raw = bytearray(entry(7, 2_000_000, ANCHOR_TICKS + 5, 255))
    raw[at] ^= change
    assert read(bytes(raw)) == {}


@given(st.binary(max_size=1024))
def test_any_bytes_do_no_harm(raw: bytes) -> None:
    assert read(raw[: len(raw) // 64 * 64]) == {}


def test_of_more_than_a_reader_takes_the_newest_are_kept() -> None:
    most = exemplar_entries.FILE_LIMIT
    found = exemplar_entries.whole(
        b"".join(entry(1, 5, number, number) for number in range(most + 9))
    )
    assert found["end_ticks"].tolist() == list(range(9, most + 9))
