"""Names cut to a column's width stay different."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from opscope.reports.shortened import shortened

FAMILY = [
    "core::conv2d_weight_backward",
    "core::conv2d_input_backward",
    "core::conv2d_bias_backward",
    "core::conv3d_weight_backward",
]


def test_a_name_that_fits_stays_and_a_long_one_keeps_both_ends() -> None:
    found = shortened(["numpy::add", "core::conv2d_weight_backward"], 16)
    assert found == {"numpy::add": "numpy::add", "core::conv2d_weight_backward": "core::co…ackward"}


@pytest.mark.parametrize("width", [10, 12, 14, 18, 24, 60])
def test_a_family_stays_apart(width: int) -> None:
    found = shortened(FAMILY, width)
    assert len({*found.values()}) == len(FAMILY)
    assert max(map(len, found.values())) <= width


@given(st.lists(st.text("ab…1演算", min_size=1, max_size=30), max_size=9), st.integers(5, 12))
def test_no_two_names_have_one_text(names: list[str], width: int) -> None:
    found = shortened(names, width)
    assert found.keys() == {*names}
    assert len({*found.values()}) == len(found)
    assert all(cell_len(text) <= width for text in found.values())
