"""The sizing sheet has the values computed from the measurements."""

from tests.dashboards.documents import FOLDER
from tests.dashboards.sizing import Size, rows

SHEET = (FOLDER / "SIZING.md").read_text()


def test_the_sheet_has_the_computed_rows() -> None:
    assert "\n".join(rows()) in SHEET, "run: python -m tests.dashboards.sizing"


def test_the_numbers_are_in_proportion() -> None:
    one, ten = Size(100), Size(1000)
    assert ten.series == 10 * one.series == 2_000_000
    assert ten.disk_bytes_per_day == 10 * one.disk_bytes_per_day
    assert Size(100, interval_s=30).processors == one.processors / 2
    assert one.row().count("|") == 7
