"""The breakdown of time on the agent's page."""

from pathlib import Path

import pytest

from opscope.host.host import Host
from opscope.reports.breakdown import breakdown, by_kind
from tests.segments.segment_writer import Range, SegmentWriter

KINDS = ["framework", "phase", "service"]


class Looking:
    """Snapshots of one process before and after it did more."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.writer = SegmentWriter()
        self.writer.note("service.name", "trainer")
        self.host = Host([str(place)], consume=False)
        self.add([Range("core::mm", 1e-3, 1000)])
        self.before = by_kind(self.host.collect())

    def add(self, ranges: list[Range]) -> None:
        self.writer.add(ranges).write(self.place)

    def by(self, kind: str, seconds: float = 2.0) -> list[tuple[str, float | None, float]]:
        found = breakdown(by_kind(self.host.collect()), self.before, seconds)
        assert sorted(found) == KINDS
        return [
            (name, None if threads is None else round(threads, 6), round(calls, 6))
            for name, threads, calls, _ in found[kind]
        ]


@pytest.fixture
def page(tmp_path: Path) -> Looking:
    return Looking(tmp_path)


def test_the_increase_is_summed_by_kind_largest_first(page: Looking) -> None:
    page.add(
        [
            Range("numpy::add", 1e-3, 100, self_s=1e-3),
            Range("numpy::dot", 1e-3, 300, self_s=1e-3),
            Range("aten::mm", 1e-3, 1000, self_s=1e-3),
        ]
    )
    assert page.by("framework") == [("torch", 0.5, 500.0), ("numpy", 0.2, 200.0)]
    assert page.by("service") == [("trainer", 0.7, 700.0)]
    assert sum(threads or 0 for _, threads, _ in page.by("phase")) == pytest.approx(0.7)


def test_with_unknown_self_times_only_calls_are_shown(page: Looking) -> None:
    page.add([Range("numpy::add", 1e-3, 100, self_s=1e-3), Range("aten::mm", 1e-3, 1000)])
    assert page.by("framework") == [("torch", None, 500.0), ("numpy", None, 50.0)]


def test_beyond_seven_groups_the_rest_is_one(page: Looking) -> None:
    page.add([Range(f"lib{i}::run", 1e-3, 100 * (10 - i), self_s=1e-3) for i in range(10)])
    groups = page.by("framework")
    assert [name for name, _, _ in groups] == [*(f"lib{i}" for i in range(7)), "3 more"]
    assert groups[-1] == ("3 more", 0.3, 300.0)


def test_without_calls_or_elapsed_time_there_are_no_rows(page: Looking) -> None:
    assert page.by("phase") == []
    page.add([Range("numpy::add", 1e-3, 100, self_s=1e-3)])
    assert page.by("phase", seconds=0.0) == []
