"""The sizing sheet has the values computed from the measurements."""

from tests.dashboards.documents import FOLDER
from tests.dashboards.sizing import PLANS, Prices, Size, costs, rows

SHEET = (FOLDER / "SIZING.md").read_text()


def test_the_sheet_has_the_computed_rows() -> None:
    assert "\n".join(rows()) in SHEET, "run: python -m tests.dashboards.sizing"


def test_the_numbers_are_in_proportion() -> None:
    one, ten = Size(100), Size(1000)
    assert ten.series == 10 * one.series == 2_000_000
    assert ten.disk_bytes_per_day == 10 * one.disk_bytes_per_day
    assert Size(100, interval_s=30).processors == one.processors / 2
    assert one.row().count("|") == 7


def test_the_sheet_has_the_computed_costs() -> None:
    assert "\n".join(costs()) in SHEET, "run: python -m tests.dashboards.sizing"


def test_a_host_costs_less_in_a_larger_fleet_and_in_a_smaller_plan() -> None:
    for plan in PLANS:
        each = [plan.dollars(hosts, Prices()) / hosts for hosts in (100, 1000, 10_000)]
        assert each == sorted(each, reverse=True)
    totals = [plan.dollars(10_000, Prices()) for plan in PLANS]
    assert totals == sorted(totals, reverse=True)
    assert PLANS[0].dollars(1000, Prices(0, 0, 0, 0)) == 0
