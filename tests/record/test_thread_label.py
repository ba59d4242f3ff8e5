"""`ThreadLabel`: a label around single calls."""

import pytest

from opscope import debug_info, get_debug_info
from opscope.record.thread_label import ThreadLabel


def test_the_label_is_there_during_the_call_alone() -> None:
    label = ThreadLabel("model_id", "digits")
    with debug_info(model_id="outer", step=3):
        assert label.run(lambda: get_debug_info()) == {"model_id": "digits", "step": "3"}
        assert label.run(label.run, get_debug_info, "model_id") == "digits"
        assert get_debug_info() == {"model_id": "outer", "step": "3"}


def test_an_error_leaves_no_label() -> None:
    with pytest.raises(ZeroDivisionError):
        ThreadLabel("model_id", "digits").run(lambda: 1 // 0)
    assert get_debug_info() == {}


def test_a_label_with_a_name_beyond_the_limit_is_left_out() -> None:
    assert ThreadLabel("x" * 70_000, "value").run(get_debug_info) == {}
