"""What a wheel is built for, and how: the compiler and the C library of each target.

All compilers are GCC, since clang (and so zig) does not call libmvec: its tensor functions are 30
times slower on x86-64. The C libraries are Debian's, unpacked below build/cross: glibc 2.31 of
Debian 11, which glibc_2_27.h brings down to 2.27, and musl 1.2 of Debian 12. A wheel for musl has
no bridge to PyTorch, which has no wheels for musl.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

from native.cross import debian

HERE = Path(__file__).parent
BUILD = HERE.parent.parent / "build" / "cross"

DEBIAN_NAMES = {"x86_64": "amd64", "aarch64": "arm64"}
_CROSS_GCC = (
    *("gcc-12-aarch64-linux-gnu", "cpp-12-aarch64-linux-gnu", "binutils-aarch64-linux-gnu"),
    *("libgcc-12-dev-arm64-cross", "libgcc-s1-arm64-cross"),
)


class Target(NamedTuple):
    platform: str
    """As in the name of the wheel."""
    machine: str
    """As `uname -m` says."""
    libc: str
    """`glibc` or `musl`."""

    def environment(self) -> dict[str, str]:
        """The environment of a build; fetches the compiler and the C library the first time."""
        compiler, libraries = _compiler(self.machine)
        flags, links = _glibc(self.machine) if self.libc == "glibc" else _musl(self.machine)
        return {
            **os.environ,
            "CC": str(compiler),
            "CFLAGS": " ".join(flags),
            "LDFLAGS": " ".join(links),
            "LD_LIBRARY_PATH": ":".join(
                filter(None, (libraries, os.environ.get("LD_LIBRARY_PATH")))
            ),
            "_PYTHON_HOST_PLATFORM": f"linux-{self.machine}",
        }

    def definitions(self, python: Path | None = None) -> dict[str, str]:
        """Of CMake, for a wheel for that interpreter, or else for all with the GIL."""
        return {
            "CMAKE_SYSTEM_NAME": "Linux",
            "CMAKE_SYSTEM_PROCESSOR": self.machine,
            "Python_INCLUDE_DIR": str(_headers_of(python) if python else _python_headers()),
        }


TARGETS = {
    target.platform: target
    for target in (
        Target("manylinux_2_27_x86_64", "x86_64", "glibc"),
        Target("manylinux_2_27_aarch64", "aarch64", "glibc"),
        Target("musllinux_1_2_x86_64", "x86_64", "musl"),
        Target("musllinux_1_2_aarch64", "aarch64", "musl"),
    )
}


def _compiler(machine: str) -> tuple[Path, str]:
    """GCC for that machine, and the directory of the libraries that it is linked with."""
    if machine == os.uname().machine:
        return Path(shutil.which("gcc") or "gcc"), ""
    if (machine, os.uname().machine) != ("aarch64", "x86_64"):
        raise debian.UnavailableError(f"no compiler for {machine} on {os.uname().machine}")
    root = debian.unpack(_CROSS_GCC, "bookworm", BUILD / "gcc-aarch64")
    return root / "usr/bin/aarch64-linux-gnu-gcc-12", str(root / "usr/lib/x86_64-linux-gnu")


def _glibc(machine: str) -> tuple[list[str], list[str]]:
    """Flags for the compiler, and for the linker."""
    root = sysroot(machine)
    triple = f"{machine}-linux-gnu"
    flags = [f"--sysroot={root}", f"-isystem {root}/usr/include/{triple}"]
    flags += [f"-isystem {root}/usr/include", f"-include {HERE / 'glibc_2_27.h'}"]
    places = (f"{root}/usr/lib/{triple}", f"{root}/lib/{triple}")
    return flags, [f"-B{place}" for place in places]


def sysroot(machine: str) -> Path:
    """Debian 11's glibc, its headers, and Linux's."""
    packages = ("libc6", "libc6-dev", "linux-libc-dev")
    into = BUILD / f"glibc-2.31-{machine}"
    return debian.unpack(packages, "bullseye", into, DEBIAN_NAMES[machine])


def _musl(machine: str) -> tuple[list[str], list[str]]:
    root, triple = _musl_root(machine), f"{machine}-linux-musl"
    own = _output(_compiler(machine)[0], "-print-file-name=include")
    places = (f"usr/include/{triple}", own, "usr/include", f"usr/include/{machine}-linux-gnu")
    flags = [f"--sysroot={root}", "-nostdinc", *(f"-isystem {root / place}" for place in places)]
    if machine == "aarch64":
        # libgcc's atomics, which find out what the processor has, call glibc's __getauxval.
        flags.append("-mno-outline-atomics")
    # Under the name that it has on Alpine, by which auditwheel too knows it.
    named = root.with_name(f"{root.name}-named")
    if not (named / "libc.so").exists():
        named.mkdir(exist_ok=True)
        name = ("--set-soname", f"libc.musl-{machine}.so.1", "--output", named / "libc.so")
        _output(tool("patchelf"), *name, musl_library(machine))
    return flags, [f"-B{named}", f"-B{root}/usr/lib/{triple}", "-static-libgcc"]


def musl_library(machine: str) -> Path:
    """The musl that wheels are compiled with, 1.2.3, and the oldest they are known to fit."""
    return _musl_root(machine) / f"lib/{machine}-linux-musl/libc.so"


def _musl_root(machine: str) -> Path:
    packages = ("musl", "musl-dev", "linux-libc-dev")
    into = BUILD / f"musl-1.2-{machine}"
    return debian.unpack(packages, "bookworm", into, DEBIAN_NAMES[machine])


def tool(name: str) -> Path:
    """A program of the environment that runs this."""
    return Path(sys.executable).with_name(name)


def _output(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _headers_of(python: Path) -> Path:
    return Path(_output(python, "-c", "import sysconfig; print(sysconfig.get_path('include'))"))


def _python_headers() -> Path:
    """This Python's headers. The limited API is the same on every machine of 64 bits.

    The pyconfig.h of Debian's Python only includes that of one architecture, from another folder.
    """
    into = BUILD / f"python-{sysconfig.get_python_version()}"
    if not into.exists():
        new = into.with_suffix(".new")
        include = Path(sysconfig.get_path("include"))
        shutil.copytree(include, new, dirs_exist_ok=True)
        of_debian = include.with_name(sysconfig.get_config_var("MULTIARCH") or "") / include.name
        if (of_debian / "pyconfig.h").exists():
            shutil.copy(of_debian / "pyconfig.h", new)
        new.rename(into)
    return into
