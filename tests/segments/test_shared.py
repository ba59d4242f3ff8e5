"""Names of foreign processes are kept while one of the processes exists, and no longer."""

import sys
from pathlib import Path

import pytest

from opscope.host.host import Host
from opscope.segments import shared
from tests.segments.segment_writer import Range, SegmentWriter


def fresh(text: str) -> str:
    """Another object of the same text."""
    return "".join(list(text))


def test_names_of_segments_are_not_interned(tmp_path: Path) -> None:
    SegmentWriter().add([Range("user::never_seen_elsewhere", 1e-3)]).write(tmp_path)
    snapshot = Host([str(tmp_path)], consume=False).collect()
    (name,) = (key.op for key in snapshot.keys if key.op.endswith("elsewhere"))
    other = fresh("user::never_seen_elsewhere")
    # The first one becomes the interned one.
    assert sys.intern(other) is other
    assert name == other


def test_two_that_have_a_name_share_it() -> None:
    first = shared.shared(fresh("user::shared by two"))
    assert shared.shared(fresh("user::shared by two")) is first


def test_new_names_without_end_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "_copies", {})
    for number in range(10 * shared._LIMIT):
        shared.shared(f"user::{number}")
        assert len(shared._copies) <= shared._LIMIT
