"""Scopes: numbered as in PyTorch, and selected by callbacks."""

import pytest

from opscope import RecordScope
from opscope._native import lib
from opscope.record.scope import scope_bits


def test_scopes_are_those_of_the_c_header_in_its_order() -> None:
    assert len(RecordScope) == lib.OPSCOPE_SCOPE_COUNT
    for scope in RecordScope:
        assert getattr(lib, f"OPSCOPE_{scope.name}") == scope


def test_no_scopes_means_all() -> None:
    assert scope_bits(()) == 0


def test_each_scope_has_its_bit() -> None:
    assert scope_bits([RecordScope.FUNCTION, RecordScope.USER_SCOPE]) == 0b1000_0001
    assert scope_bits([7, 7]) == 1 << 7


@pytest.mark.parametrize("scope", [10, -1])
def test_an_unknown_scope_is_an_error_that_names_it(scope: int) -> None:
    with pytest.raises(ValueError, match=str(scope)):
        scope_bits([scope])
