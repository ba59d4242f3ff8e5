"""The table: its rows, order, columns and words."""

import pytest

from opscope.timeline.averages import Average, Averages, bytes_text, shapes_text, time_text


def row(key: str, self_us: float, total_us: float, count: int = 1, **others: object) -> Average:
    fields: dict[str, object] = {
        "self_cpu_memory_usage": None,
        "cpu_memory_usage": None,
        "failed_count": 0,
        "phases": ("other",),
        **others,
    }
    return Average(key, count, self_us, total_us, **fields)  # type: ignore[arg-type]


ROWS = Averages([row("a", 30.0, 100.0, 2), row("b", 70.0, 70.0, 10)])


def names(table: str) -> list[str]:
    return [line.split()[0] for line in table.splitlines()[3:-2]]


def test_the_table_has_pytorchs_columns() -> None:
    title = ROWS.table().splitlines()[1]
    assert title.split("  ") != []
    for column in (
        "Name",
        "Self CPU %",
        "Self CPU",
        "CPU total %",
        "CPU total",
        "CPU time avg",
        "# of Calls",
    ):
        assert column in title
    assert "Mem" not in title
    assert "Input Shapes" not in title


def test_a_row_says_shares_times_and_calls() -> None:
    line = ROWS.table().splitlines()[3]
    assert line.split() == ["a", "30.00%", "30.000us", "100.00%", "100.000us", "50.000us", "2"]
    assert "Self CPU time total: 100.000us" in ROWS.table()


@pytest.mark.parametrize(
    ("sort_by", "order"),
    [
        (None, ["a", "b"]),
        ("self_cpu_time_total", ["b", "a"]),
        ("cpu_time_total", ["a", "b"]),
        ("cpu_time", ["a", "b"]),
        ("count", ["b", "a"]),
    ],
)
def test_rows_are_sorted_by_what_was_asked_for(sort_by: str | None, order: list[str]) -> None:
    assert names(ROWS.table(sort_by=sort_by)) == order


def test_an_unknown_order_is_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"cpu_time_total, cpu_time, count.*not 'calls'"):
        ROWS.table(sort_by="calls")


def test_row_limit_cuts_the_table_and_not_the_shares() -> None:
    assert names(ROWS.table(sort_by="count", row_limit=1)) == ["b"]
    assert names(ROWS.table(row_limit=-1)) == ["a", "b"]
    assert "70.00%" in ROWS.table(sort_by="count", row_limit=1)


def test_memory_and_shapes_are_columns_where_they_are_known() -> None:
    known = Averages(
        [row("a", 1, 1, self_cpu_memory_usage=2048, cpu_memory_usage=4096, input_shapes=((2,),))]
    )
    line = known.table().splitlines()[3]
    assert "4.00 KiB  2.00 KiB  " in " ".join(line.split("   ")) or "2.00 KiB" in line
    assert line.endswith("[[2]]")


def test_long_names_and_shapes_are_cut() -> None:
    long = Averages([row("x" * 100, 1, 1, input_shapes=((1,),) * 100)])
    assert max(map(len, long.table(max_name_column_width=20).splitlines())) < 200
    assert "x" * 17 + "..." in long.table(max_name_column_width=20)


def test_the_total_is_all_rows_in_one() -> None:
    total = ROWS.total_average()
    assert (total.count, total.self_cpu_time_total) == (12, 100.0)


def test_an_empty_table_is_a_table() -> None:
    assert "Self CPU time total: 0.000us" in Averages().table()


def test_units_suit_what_is_said() -> None:
    assert [time_text(us) for us in (0.5, 1500.0, 2.5e6)] == ["0.500us", "1.500ms", "2.500s"]
    assert [bytes_text(n) for n in (None, 12, 3 << 20, 5 << 30)] == [
        "",
        "12 B",
        "3.00 MiB",
        "5.00 GiB",
    ]
    assert shapes_text(((2, 3), None, ())) == "[[2, 3], [], []]"


def test_call_sites_of_installed_packages_begin_with_the_package() -> None:
    sites = (
        "/opt/env/lib/python3.11/site-packages/torch/optim/adam.py(544): adam",
        "/usr/lib/python3/dist-packages/numpy/fft.py(3): fft",
        "/srv/train.py(7): main",
    )
    row = Average("a", 1, 1.0, 1.0, None, None, 0, (), stack=sites)
    lines = Averages([row]).table().splitlines()
    assert [line.split("  ")[-1] for line in lines[3:6]] == [
        "torch/optim/adam.py(544): adam",
        "numpy/fft.py(3): fft",
        "/srv/train.py(7): main",
    ]
    assert "<br>numpy/fft.py(3): fft<br>" in Averages([row])._repr_html_()
