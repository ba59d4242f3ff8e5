"""Attaching and detaching: which pointers change, and that they all come back."""

import ctypes
import gc
import math
import mmap
import sys
from typing import Any

import numpy as np
import pytest

import opscope
from opscope._native import ffi, lib
from opscope.bridges import numpy as bridge
from opscope.errors import BridgeError

from .conftest import HEAD, pointers


def _attach_one(kind: int, subject: object, name: str) -> int:
    array: Any = ffi.new("opscope_numpy_target[]", 1)
    kept = ffi.new("char[]", name.encode())
    array[0].kind, array[0].object, array[0].name = kind, id(subject), kept
    assert lib.opscope_numpy_attach(array, 1) == lib.OPSCOPE_OK
    return int(array[0].status)


@pytest.fixture(autouse=True)
def detached() -> None:
    """A profile in a test before this one leaves the bridge attached (timeline/frameworks.py)."""
    bridge.detach()


def test_every_pointer_changes_and_comes_back() -> None:
    before = pointers()
    handle = opscope.add_global_callback(lambda fn: None)
    bridge.attach()
    during = pointers()
    bridge.detach()
    opscope.remove_callback(handle)
    assert [name for name in before if during[name] == before[name]] == []
    assert pointers() == before


def test_public_functions_keep_their_hashes() -> None:
    public = [value for value in vars(np).values() if callable(value)]
    public += [value for value in vars(np.ndarray).values() if callable(value)]
    before = [hash(value) for value in public]
    bridge.attach()
    during = [hash(value) for value in public]
    bridge.detach()
    assert during == before


def test_attaching_again_and_again_ends_where_it_began() -> None:
    before = pointers()
    for _ in range(20):
        bridge.attach()
        bridge.attach()
        assert bridge.status().pointers == len(before)
        bridge.detach()
    bridge.detach()
    assert pointers() == before
    assert bridge.status().pointers == 0


def test_detaching_gives_back_every_reference() -> None:
    bridge.attach()
    bridge.detach()
    counts = [sys.getrefcount(f) for f in (np.add, np.matmul, np.dot)]
    for _ in range(5):
        bridge.attach()
        bridge.detach()
    assert [sys.getrefcount(f) for f in (np.add, np.matmul, np.dot)] == counts


def test_status_says_what_is_attached() -> None:
    assert bridge.status() == (False, "not attached", np.__version__, 0, {})
    bridge.attach()
    status = bridge.status()
    bridge.detach()
    assert status == (True, "attached", np.__version__, len(pointers()), {})


@pytest.mark.parametrize("version", ["1.25.2", "2.99.0", "3.0.0", "two", "2.x.1"])
def test_an_unknown_version_is_left_alone(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    before = pointers()
    monkeypatch.setattr(np, "__version__", version)
    with pytest.raises(BridgeError, match=version):
        bridge.attach()
    assert version in bridge.status().reason
    assert pointers() == before


def test_without_numpy_there_is_nothing_to_attach(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "numpy")
    with pytest.raises(BridgeError, match="numpy is not imported"):
        bridge.attach()


@pytest.mark.parametrize(
    ("kind", "subject"),
    [
        (lib.OPSCOPE_NUMPY_UFUNC, 7),
        (lib.OPSCOPE_NUMPY_UFUNC, len),
        (lib.OPSCOPE_NUMPY_FUNCTION, np.add),
        (lib.OPSCOPE_NUMPY_FUNCTION, lambda: None),
        (lib.OPSCOPE_NUMPY_GETITEM, [1]),
        (lib.OPSCOPE_NUMPY_SETITEM, np.float64(1)),
    ],
)
def test_an_object_of_another_layout_is_refused(kind: int, subject: object) -> None:
    assert _attach_one(kind, subject, "test::other") == lib.OPSCOPE_ERR_UNSUPPORTED
    assert lib.opscope_numpy_attached_count() == 0


class _Definition(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def test_a_read_only_page_is_refused_and_not_written() -> None:
    page = mmap.mmap(-1, mmap.PAGESIZE)
    definition = _Definition.from_buffer(page)
    m_ml = id(gc.isenabled) + HEAD
    original = _Definition.from_address(ctypes.c_size_t.from_address(m_ml).value)
    definition.name, definition.function = original.name, original.function
    definition.flags = original.flags
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p] * 3
    builtin = make(ctypes.addressof(definition), None, None)
    libc = ctypes.CDLL(None, use_errno=True)
    address = ctypes.c_void_p(ctypes.addressof(definition))
    assert libc.mprotect(address, mmap.PAGESIZE, mmap.PROT_READ) == 0
    status = _attach_one(lib.OPSCOPE_NUMPY_FUNCTION, builtin, "test::read_only")
    assert status == lib.OPSCOPE_ERR_UNSUPPORTED
    assert builtin() is gc.isenabled()
    assert libc.mprotect(address, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE) == 0
    assert _attach_one(lib.OPSCOPE_NUMPY_FUNCTION, builtin, "test::writable") == lib.OPSCOPE_OK
    lib.opscope_numpy_detach()
    assert definition.function == original.function
    # The bridge remembers the definition for ever, as those of extension modules live for ever.
    _kept.append((page, definition, builtin))


_METH_O = 8
_kept: list[object] = []


@pytest.mark.skipif(
    "t" in sys.abiflags, reason="without the GIL a thread may still be about to use the room"
)
def test_a_builtin_that_is_not_called_as_it_says_takes_no_room() -> None:
    original = _Definition.from_address(ctypes.c_size_t.from_address(id(gc.isenabled) + HEAD).value)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p] * 3
    # More than the bridge has room for of one calling convention, each somewhere else.
    definitions = [
        _Definition(original.name, original.function, original.flags, None) for _ in range(100)
    ]
    for definition in definitions:
        builtin = make(ctypes.addressof(definition), None, None)
        definition.flags = _METH_O  # it has been made to take no argument
        status = _attach_one(lib.OPSCOPE_NUMPY_FUNCTION, builtin, "test::other")
        assert status == lib.OPSCOPE_ERR_UNSUPPORTED
        assert definition.function == original.function
    assert _attach_one(lib.OPSCOPE_NUMPY_FUNCTION, math.sqrt, "test::sqrt") == lib.OPSCOPE_OK
    lib.opscope_numpy_detach()
    assert math.sqrt(16.0) == 4.0


@pytest.mark.parametrize(
    ("builtin", "arguments"),
    [(gc.isenabled, ()), (math.sqrt, (16.0,)), (math.gcd, (12, 18)), (math.isclose, (1.0, 2.0))],
    ids=["METH_NOARGS", "METH_O", "METH_FASTCALL", "METH_FASTCALL with keywords"],
)
def test_every_calling_convention_passes_arguments_on(
    builtin: Any, arguments: tuple[Any, ...]
) -> None:
    expected = builtin(*arguments)
    seen: list[tuple[object, ...]] = []
    handle = opscope.add_global_callback(
        lambda fn: seen.append(tuple(fn.inputs)), needs_inputs=True
    )
    try:
        assert _attach_one(lib.OPSCOPE_NUMPY_FUNCTION, builtin, "test::call") == lib.OPSCOPE_OK
        assert builtin(*arguments) == expected
    finally:
        lib.opscope_numpy_detach()
        opscope.remove_callback(handle)
    assert seen == [arguments]
    assert builtin(*arguments) == expected
    assert len(seen) == 1
