"""The slots of libraries that call a BLAS of the test's own: what is replaced, what arrives."""

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import opscope
from opscope._native import ffi, lib

_HERE = Path(__file__).parent
_CC = shutil.which("cc")

pytestmark = pytest.mark.skipif(_CC is None, reason="no C compiler")

EXPECTED = {
    "sgemm": "101 111 112 32 32 32 0.5 1.25 11 2.5 12 -1.5 3.75 13",
    "dgemm": "102 112 113 32 32 32 0.5 1.25 11 2.5 12 -1.5 3.75 13",
    "dgetrf": "32 32 6.5 32",
    "dsyevr": "V A L 32 1.5 32 2.5 3.5 8 9 4.5 5.5 6.5 10 7.5 64 11 1 1 1",
}


class Program:
    """A caller and its BLAS, both loaded."""

    def __init__(self, directory: Path, name: str, options: tuple[str, ...], mode: int) -> None:
        # The loader takes one that is loaded under the same name, whatever its directory.
        fake, self.path = directory / f"{directory.name}.so", str(directory / f"{name}.so")
        _compile("blas_fake.c", str(fake), ())
        link = ("-L", str(directory), f"-l:{fake.name}", f"-Wl,-rpath,{directory}", *options)
        _compile("blas_caller.c", self.path, link)
        self.caller = ctypes.CDLL(self.path, mode)
        self.fake = ctypes.CDLL(str(fake))
        self.fake.fake_got.restype = ctypes.c_char_p
        self.caller.call_dgemm.argtypes = (ctypes.c_int64,)
        self.caller.call_dsyevr.argtypes = (ctypes.c_int64, ctypes.c_int64)
        self.caller.call_dsyevr.restype = ctypes.c_int64

    def attach(self) -> Any:
        path = ffi.new("char[]", self.path.encode())
        library = ffi.new("opscope_blas_library[]", [(path,)])
        assert lib.opscope_blas_attach(library, 1) == lib.OPSCOPE_OK
        assert library[0].status == lib.OPSCOPE_OK
        return library[0].slots

    def call_all(self) -> dict[str, str]:
        """What the routines got, and results that are not their callers' own."""
        got = {}
        calls: dict[str, Callable[[], object]] = {
            "sgemm": lambda: self.caller.call_sgemm(32),
            "dgemm": lambda: self.caller.call_dgemm(32),
            "dgetrf": lambda: self.caller.call_dgetrf(32),
            "dsyevr": lambda: self.caller.call_dsyevr(32, 64),
        }
        for name, call in calls.items():
            result = call()
            got[name] = self.fake.fake_got().decode()
            assert name != "dgetrf" or result == 48
            assert name != "dsyevr" or result == 12
        return got


def _compile(source: str, out: str, options: tuple[str, ...]) -> None:
    command = [str(_CC), "-O1", "-fPIC", "-shared", str(_HERE / source), "-o", out, *options]
    subprocess.run(command, check=True, timeout=120)


@pytest.fixture
def seen() -> Iterator[list[tuple[str, tuple[object, ...]]]]:
    """The ranges of BLAS and their inputs, on this thread."""
    found: list[tuple[str, tuple[object, ...]]] = []
    handle = opscope.add_thread_local_callback(
        lambda fn: found.append((fn.name, fn.inputs)) if "::" in fn.name else None,
        needs_inputs=True,
    )
    yield found
    opscope.remove_callback(handle)
    lib.opscope_blas_detach()


ALL = [
    ("blas::sgemm", (32, 32, 32)),
    ("blas::dgemm", (32, 32, 32)),
    ("lapack::dgetrf", (32, 32)),
    ("lapack::dsyevr", (32,)),
]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("plain", ()),
        ("relro", ("-Wl,-z,relro,-z,now",)),
        ("no_plt", ("-fno-plt", "-Wl,-z,relro,-z,now")),
        ("sysv_hash", ("-Wl,--hash-style=sysv",)),
    ],
)
def test_each_call_is_one_range_and_gets_all_its_arguments(
    seen: list[Any], tmp_path: Path, name: str, options: tuple[str, ...]
) -> None:
    program = Program(tmp_path, name, options, os.RTLD_NOW)
    bare = program.call_all()
    slots = program.attach()
    assert (slots.replaced, slots.unresolved, slots.foreign, slots.read_only) == (4, 0, 0, 0)
    assert bare == EXPECTED
    assert program.call_all() == EXPECTED
    assert seen == ALL
    with opscope.recording(False):
        assert program.call_all() == EXPECTED
    assert seen == ALL
    assert program.attach().replaced == 4
    lib.opscope_blas_detach()
    assert program.call_all() == EXPECTED
    assert seen == ALL


def test_pages_of_pointers_stay_read_only(seen: list[Any], tmp_path: Path) -> None:
    program = Program(tmp_path, "relro", ("-Wl,-z,relro,-z,now",), os.RTLD_NOW)

    def access() -> list[str]:
        with open("/proc/self/maps") as maps:
            return [line.split()[1] for line in maps if line.rstrip().endswith(program.path)]

    before = access()
    assert program.attach().replaced == 4
    during = access()
    lib.opscope_blas_detach()
    assert before == during == access()


def test_small_calls_and_queries_of_workspaces_are_no_ranges(
    seen: list[Any], tmp_path: Path
) -> None:
    program = Program(tmp_path, "plain", (), os.RTLD_NOW)
    program.attach()
    program.caller.call_sgemm(3)
    program.caller.call_dgemm(20)
    program.caller.call_dgetrf(9)
    program.caller.call_dsyevr(32, -1)
    program.caller.call_dgemm(-32)
    program.caller.call_dgemm(1 << 40)
    assert seen == [("blas::dgemm", (1 << 40,) * 3)]


def test_pointers_that_the_loader_has_not_resolved_are_left_until_it_has(
    seen: list[Any], tmp_path: Path
) -> None:
    program = Program(tmp_path, "lazy", ("-Wl,-z,lazy",), os.RTLD_LAZY)
    program.caller.call_sgemm(32)
    slots = program.attach()
    assert (slots.replaced, slots.unresolved) == (1, 3)
    assert program.call_all() == EXPECTED
    assert [name for name, _ in seen] == ["blas::sgemm"]
    slots = program.attach()
    assert (slots.replaced, slots.unresolved) == (4, 0)
    assert program.call_all() == EXPECTED
    assert seen[1:] == ALL


def test_the_own_calls_of_a_library_are_left_alone(seen: list[Any], tmp_path: Path) -> None:
    """One that defines what it calls."""
    path = str(tmp_path / "whole.so")
    _compile("blas_caller.c", path, (str(_HERE / "blas_fake.c"),))
    caller = ctypes.CDLL(path)
    argument = ffi.new("char[]", path.encode())
    library = ffi.new("opscope_blas_library[]", [(argument,)])
    assert lib.opscope_blas_attach(library, 1) == lib.OPSCOPE_OK
    assert library[0].slots.replaced == 0
    caller.call_sgemm(32)
    assert seen == []


def test_a_library_that_is_not_loaded_is_not_loaded(tmp_path: Path) -> None:
    path = ffi.new("char[]", str(tmp_path / "none.so").encode())
    library = ffi.new("opscope_blas_library[]", [(path,)])
    assert lib.opscope_blas_attach(library, 1) == lib.OPSCOPE_OK
    assert library[0].status == lib.OPSCOPE_ERR_NOT_FOUND
