"""The exceptions of Opscope, and the conversion of C's status codes."""

import pytest

import opscope
from opscope import errors
from opscope._native import ffi, lib

STATUSES = [name for name in dir(lib) if name.startswith("OPSCOPE_ERR_")]


def test_every_exception_is_an_opscope_error_with_a_docstring() -> None:
    found = [value for value in vars(errors).values() if isinstance(value, type)]
    assert opscope.OpscopeError in found
    for error in found:
        assert issubclass(error, opscope.OpscopeError)
        assert error.__doc__
        assert getattr(opscope, error.__name__) is error


def test_ok_is_no_error() -> None:
    errors.check(lib.OPSCOPE_OK, "all well")


@pytest.mark.parametrize("name", sorted(set(STATUSES) - {"OPSCOPE_ERR_NO_MEMORY"}))
def test_every_status_becomes_the_error_asked_for_with_its_own_reason(name: str) -> None:
    with pytest.raises(opscope.RecorderError) as caught:
        errors.check(getattr(lib, name), "cannot do it", opscope.RecorderError)
    what, _, reason = str(caught.value).partition(": ")
    assert what == "cannot do it"
    assert reason


def test_every_status_has_a_text_of_its_own() -> None:
    texts = {ffi.string(lib.opscope_status_text(getattr(lib, name))) for name in STATUSES}
    assert len(texts) == len(STATUSES) == 14


def test_an_unknown_status_has_a_text_too() -> None:
    with pytest.raises(opscope.OpscopeError, match=r"cannot do it: ."):
        errors.check(-999, "cannot do it")


def test_no_memory_is_pythons_own_error() -> None:
    with pytest.raises(MemoryError, match="cannot do it"):
        errors.check(lib.OPSCOPE_ERR_NO_MEMORY, "cannot do it")
