"""A CPython for musl, of x86-64 or aarch64, which Debian has not.

It is compiled from Debian's source, with the compiler of the wheels, into build/cross. It lacks
OpenSSL and libffi.
"""

import os
import tempfile
from pathlib import Path

from native.cross import debian
from native.cross.build import run
from native.cross.debian_python import debian_python
from native.cross.targets import BUILD, DEBIAN_NAMES, Target

VERSION, _SUITE = "3.13", "trixie"


def musl_python(target: Target) -> Path:
    """A CPython for that target.

    It runs with a newer musl than the one that it is compiled with: NumPy's wheel crashes at its
    import with that of Debian 12, 1.2.3.
    """
    machine = target.machine
    into = BUILD / f"python-{VERSION}-musl-{machine}"
    python = into / "bin" / f"python{VERSION}"
    if not python.exists():
        musl = debian.unpack(["musl"], "sid", BUILD / f"musl-sid-{machine}", DEBIAN_NAMES[machine])
        environ = target.environment()
        environ |= _tools(Path(environ["CC"]))
        # While it compiles for another C library, CPython needs one of its own version that runs.
        helper = debian_python(VERSION, _SUITE)
        name = f"python{VERSION}"
        source = debian.unpack_source(name, _SUITE, BUILD / f"{name}-source-{_SUITE}")
        zlib = debian.unpack_source("zlib", "bookworm", BUILD / "zlib-source")
        with tempfile.TemporaryDirectory() as folder:
            library, build = Path(folder, "zlib"), Path(folder, "python")
            triple = f"{machine}-linux-musl"
            environ["CC"] = str(_compiler_for_musl(environ, triple, Path(folder, "cc")))
            run("cp", "-r", zlib, library)
            static = environ | {"CFLAGS": "-O2 -fPIC"}
            run("./configure", "--static", cwd=library, environ=static)
            run("make", "libz.a", cwd=library, environ=static)
            build.mkdir()
            loader = musl / f"usr/lib/{triple}/libc.so"
            environ |= {
                "CFLAGS": "-O1",
                "LDFLAGS": f"{environ['LDFLAGS']} -Wl,--dynamic-linker={loader}",
                "ZLIB_CFLAGS": f"-I{library}",
                "ZLIB_LIBS": str(library / "libz.a"),
            }
            _compile(source / "configure", build, into, helper, triple, environ)
    return python


def _compiler_for_musl(environ: dict[str, str], triple: str, script: Path) -> Path:
    """GCC for glibc as a program that names musl, and finds its headers without being told.

    CPython's configure asks it for the name, and compares that with what the headers say.
    """
    script.write_text(
        "#!/bin/sh\n"
        f'[ "$*" = --print-multiarch ] && echo {triple} && exit\n'
        f'exec {environ["CC"]} {environ["CFLAGS"]} "$@"\n'
    )
    script.chmod(0o755)
    return script


def _tools(compiler: Path) -> dict[str, str]:
    """The programs beside the compiler, if it compiles for another machine."""
    prefix, _, _ = compiler.name.rpartition("gcc")
    names = ("ar", "readelf") if prefix else ()
    return {name.upper(): str(compiler.with_name(prefix + name)) for name in names}


def _compile(
    configure: Path, build: Path, into: Path, helper: Path, triple: str, environ: dict[str, str]
) -> None:
    environ = environ | {
        "PKG_CONFIG": "/bin/false",  # which knows this machine's libraries
        "ac_cv_file__dev_ptmx": "yes",
        "ac_cv_file__dev_ptc": "no",
        "ac_cv_buggy_getaddrinfo": "no",
    }
    options = ("--disable-test-modules", f"--host={triple}", "--build=x86_64-linux-gnu")
    places = (f"--prefix={into}", f"--with-build-python={helper}")
    run(configure, *places, *options, "--without-ensurepip", cwd=build, environ=environ)
    run("make", f"-j{os.cpu_count()}", cwd=build, environ=environ)
    run("make", "altinstall", cwd=build, environ=environ)
