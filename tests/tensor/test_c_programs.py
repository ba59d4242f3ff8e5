"""Programs in C link with the core by the compiler's flags, by pkg-config and by CMake; what the
installed headers declare is in the shipped libraries."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import opscope

EXAMPLE = Path(__file__).with_name("use_tensors.c")
FOLDER = Path(opscope.get_library_dir())
EXPECTED = "7.5\n0.5 1 1.5 2\n"
COMPILER = shutil.which("cc") or shutil.which("gcc")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler")


def run(*command: str | Path, **environment: str) -> str:
    done = subprocess.run(
        [str(each) for each in command],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env={**os.environ, **environment},
    )
    return done.stdout


def test_flags_of_the_two_functions_suffice(tmp_path: Path) -> None:
    assert COMPILER is not None
    program = tmp_path / "flags"
    run(
        *(COMPILER, EXAMPLE, f"-I{opscope.get_include()}", f"-L{FOLDER}", "-lopscope_tensor"),
        *("-lopscope", f"-Wl,-rpath,{FOLDER}", "-Wall", "-Werror", "-o", program),
    )
    assert run(program) == EXPECTED


@pytest.mark.skipif(shutil.which("pkg-config") is None, reason="no pkg-config")
def test_pkg_config_has_the_flags(tmp_path: Path) -> None:
    assert COMPILER is not None
    found = {"PKG_CONFIG_PATH": str(FOLDER / "pkgconfig")}
    version = run("pkg-config", "--modversion", "opscope-tensor", **found).strip()
    assert version == opscope.__version__
    flags = run("pkg-config", "--cflags", "--libs", "opscope-tensor", **found).split()
    program = tmp_path / "packaged"
    run(COMPILER, EXAMPLE, *flags, "-o", program)
    assert run(program) == EXPECTED


@pytest.mark.skipif(shutil.which("cmake") is None, reason="no CMake")
def test_cmake_finds_the_package(tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.18)\nproject(example C)\n"
        f"find_package(opscope REQUIRED)\nadd_executable(example {EXAMPLE})\n"
        "target_link_libraries(example opscope::tensor)\n"
    )
    build = tmp_path / "build"
    run("cmake", "-S", tmp_path, "-B", build, f"-Dopscope_DIR={FOLDER / 'cmake'}")
    run("cmake", "--build", build)
    assert run(build / "example") == EXPECTED


@pytest.mark.skipif(shutil.which("nm") is None, reason="no nm")
def test_the_libraries_have_what_the_installed_headers_declare() -> None:
    shipped = set()
    for library in FOLDER.glob("libopscope*.so"):
        lines = run("nm", "-D", "--defined-only", library).splitlines()
        shipped |= {line.split()[-1] for line in lines if line}
    headers = sorted(Path(opscope.get_include(), "opscope").glob("*.h"))
    assert len(headers) > 10
    for header in headers:
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
        declared = set(re.findall(r"OPSCOPE_API\s[^;{(]*?\b(opscope_\w+)\s*\(", text))
        assert declared <= shipped, header.name
