"""A library that needs CUDA's is loaded with stubs in their place, and gets harmless answers."""

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

from tests.torch_versions import dynamic_symbols
from tests.torch_versions.cuda_stubs import make_stubs

PROGRAM = """
#include <cstring>
#include <typeinfo>
extern "C" int cudaGetDeviceCount(int *count);
namespace at { bool is_available(); struct Stream { virtual ~Stream(); }; }
namespace c10d {
struct Options { Options(bool is_high); virtual ~Options(); long number; };
}
extern "C" int device_count() { return cudaGetDeviceCount(nullptr); }
extern "C" bool is_available() { return at::is_available(); }
extern "C" const char *type() { return typeid(at::Stream).name(); }
extern "C" long options() {
    void *memory = ::operator new(sizeof(c10d::Options));
    std::memset(memory, 1, sizeof(c10d::Options));
    auto *made = new (memory) c10d::Options(true);
    const long number = made->number;
    const volatile auto *kept = made;
    const_cast<c10d::Options *>(kept)->~Options();
    return number;
}
"""
EMPTY = 'extern "C" {}'

ASK = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.is_available.restype = ctypes.c_bool
library.type.restype = ctypes.c_char_p
library.options.restype = ctypes.c_long
print(library.device_count(), library.is_available(), library.type().decode(), library.options())
"""


def _library(source: str, path: Path, *options: str) -> Path:
    command = ["c++", "-include", "new", "-shared", "-fPIC", f"-Wl,-soname,{path.name}", *options]
    subprocess.run(
        [*command, "-x", "c++", "-", "-o", str(path)], input=source, text=True, check=True
    )
    return path


@pytest.fixture
def needing(tmp_path: Path) -> Path:
    """It was linked with a libtorch_cuda and a libcudart, which are no longer there."""
    gone = tmp_path / "gone"
    gone.mkdir()
    for name in ("libtorch_cuda.so", "libcudart.so.12"):
        _library(EMPTY, gone / name)
    with_cuda = ["-Wl,--no-as-needed", f"-L{gone}", "-l:libtorch_cuda.so", "-l:libcudart.so.12"]
    return _library(PROGRAM, tmp_path / "libpytorch.so", "-Wl,-rpath,$ORIGIN", *with_cuda)


def test_it_is_loaded_and_gets_harmless_answers(needing: Path) -> None:
    with pytest.raises(OSError, match="cannot open shared object file"):
        ctypes.CDLL(str(needing))
    assert make_stubs([needing], needing.parent) == ["libcudart.so.12", "libtorch_cuda.so"]
    command = [sys.executable, "-c", ASK, str(needing)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "100 False N2at6StreamE 0\n", "")


def test_what_the_process_has_already_is_no_stub(needing: Path) -> None:
    make_stubs([needing], needing.parent)
    found = dynamic_symbols.defined([needing.parent / "libtorch_cuda.so"])
    assert {"cudaGetDeviceCount", "_ZN2at12is_availableEv", "_ZTIN2at6StreamE"} <= found
    assert found.isdisjoint({"_Znwm", "memset", "PyList_New"})


def test_a_library_without_cuda_needs_no_stubs(tmp_path: Path) -> None:
    assert make_stubs([_library(EMPTY, tmp_path / "libplain.so")], tmp_path) == []
    assert [path.name for path in tmp_path.iterdir()] == ["libplain.so"]
