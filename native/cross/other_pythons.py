"""Try the wheels with Pythons that this machine need not have: the newest, and one for musl.

Usage: python -m native.cross.other_pythons DIRECTORY-OF-WHEELS

All are of Debian and lie below build/cross, made the first time. CPython 3.14 and 3.15 are unpacked
from their packages, with their own C library. Debian has no Python for musl, so one is compiled
from Debian's source in two minutes, with the compiler of the wheels. It lacks OpenSSL: the Python
that runs this downloads what it installs. Nothing needs root. This is for x86-64 alone.

Says which Python is not there, tries the others, and ends with an error then: what was not tried
must not look like what passed.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from native.cross import debian
from native.cross.build import ROOT, run
from native.cross.targets import BUILD, TARGETS, tool
from native.cross.try_wheel import only_wheel

MUSL = TARGETS["musllinux_1_2_x86_64"]
NEWER = ("3.14", "3.15")
"""The versions of CPython that this machine need not have."""
TRIAL = Path(__file__).with_name("try_wheel.py")
_PACKAGES = (
    *("python{0}", "python{0}-minimal", "python{0}-venv", "libpython{0}-minimal"),
    *("libpython{0}-stdlib", "python3-pip-whl", "libc6", "libgcc-s1", "libstdc++6", "libssl3t64"),
    *("libexpat1", "libffi8", "zlib1g", "libbz2-1.0", "liblzma5", "libsqlite3-0", "libuuid1"),
)
_BESIDES = ("libzstd1",)
"""What CPython needs besides, from 3.14 on."""
_LIBRARIES = "usr/lib/x86_64-linux-gnu"
_WHEELS = "/usr/share/python-wheels"
"""Where Debian's ensurepip looks for pip."""
_MUSL_VERSION, _MUSL_SUITE = "3.13", "trixie"


def main(directory: Path) -> None:
    if (machine := os.uname().machine) != "x86_64":
        raise SystemExit(f"these Pythons are for x86-64 alone, and this machine is {machine}")
    wheel = only_wheel(directory, f"opscope-*-abi3-{MUSL.platform}.whl")
    trials: dict[str, Callable[[], None]] = {
        **{f"CPython {version}": partial(try_newer, version, directory) for version in NEWER},
        "CPython for musl": partial(try_on_musl, wheel),
    }
    missing = []
    for name, trial in trials.items():
        try:
            trial()
        except debian.UnavailableError as error:
            print(f"not tried with {name}: {error}", flush=True)
            missing.append(name)
    if missing:
        raise SystemExit(f"not tried with {', '.join(missing)}")


def try_newer(version: str, directory: Path) -> None:
    subprocess.run([debian_python(version, "sid", _BESIDES), TRIAL, directory], check=True)


def try_on_musl(wheel: Path) -> None:
    python = musl_python()
    with tempfile.TemporaryDirectory() as packages:
        run(
            *(sys.executable, "-m", "pip", "download", "--only-binary=:all:", "--dest", packages),
            *(f"--platform={MUSL.platform}", f"--python-version={_MUSL_VERSION}"),
            f"{wheel}[agent]",
        )
        environ = os.environ | {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": packages}
        subprocess.run([python, TRIAL, wheel], env=environ, check=True)


def debian_python(version: str, suite: str, besides: tuple[str, ...] = ()) -> Path:
    """That version of CPython, which runs with its suite's C library whatever this machine's is."""
    packages = [name.format(version) for name in _PACKAGES] + list(besides)
    root = debian.unpack(packages, suite, BUILD / f"python-{version}-{suite}")
    python = root / f"usr/bin/python{version}"
    ready = root / "ready"
    if not ready.exists():
        loader = root / "usr/lib64/ld-linux-x86-64.so.2"
        path = ("--force-rpath", "--set-rpath", root / _LIBRARIES)
        run(tool("patchelf"), "--set-interpreter", loader, *path, python)
        for settings in (root / f"usr/lib/python{version}").glob("_sysconfigdata_*.py"):
            if not settings.is_symlink():
                settings.write_text(settings.read_text().replace(_WHEELS, f"{root}{_WHEELS}"))
        ready.touch()
    return python


def musl_python() -> Path:
    """A CPython for musl.

    It runs with a newer musl than the one that it is compiled with: NumPy's wheel crashes at its
    import with that of Debian 12, 1.2.3.
    """
    into = BUILD / f"python-{_MUSL_VERSION}-musl"
    python = into / "bin" / f"python{_MUSL_VERSION}"
    if not python.exists():
        musl = debian.unpack(["musl"], "sid", BUILD / "musl-sid")
        environ = MUSL.environment()
        # While it compiles for another C library, CPython needs one of its own version that runs.
        helper = debian_python(_MUSL_VERSION, _MUSL_SUITE)
        name = f"python{_MUSL_VERSION}"
        source = debian.unpack_source(name, _MUSL_SUITE, BUILD / f"{name}-source-{_MUSL_SUITE}")
        zlib = debian.unpack_source("zlib", "bookworm", BUILD / "zlib-source")
        with tempfile.TemporaryDirectory() as folder:
            library, build = Path(folder, "zlib"), Path(folder, "python")
            run("cp", "-r", zlib, library)
            static = environ | {"CFLAGS": f"{environ['CFLAGS']} -O2 -fPIC"}
            run("./configure", "--static", cwd=library, environ=static)
            run("make", "libz.a", cwd=library, environ=static)
            build.mkdir()
            loader = musl / "usr/lib/x86_64-linux-musl/libc.so"
            _compile(source, build, into, helper, library, loader, environ)
    return python


def _compile(
    source: Path,
    build: Path,
    into: Path,
    helper: Path,
    zlib: Path,
    loader: Path,
    environ: dict[str, str],
) -> None:
    environ = environ | {
        "CFLAGS": f"{environ['CFLAGS']} -O1",
        "LDFLAGS": f"{environ['LDFLAGS']} -Wl,--dynamic-linker={loader}",
        "ZLIB_CFLAGS": f"-I{zlib}",
        "ZLIB_LIBS": str(zlib / "libz.a"),
        "PKG_CONFIG": "/bin/false",  # which knows this machine's libraries
        "ac_cv_file__dev_ptmx": "yes",
        "ac_cv_file__dev_ptc": "no",
        "ac_cv_buggy_getaddrinfo": "no",
    }
    options = ("--disable-test-modules", "--host=x86_64-linux-musl", "--build=x86_64-linux-gnu")
    configure = (source / "configure", f"--prefix={into}", f"--with-build-python={helper}")
    run(*configure, *options, "--without-ensurepip", cwd=build, environ=environ)
    # It asks the compiler for the name, and that is GCC for glibc.
    soabi = f"cpython-{_MUSL_VERSION.replace('.', '')}-x86_64-linux-musl"
    names = (f"SOABI={soabi}", f"EXT_SUFFIX=.{soabi}.so")
    run("make", f"-j{os.cpu_count()}", *names, cwd=build, environ=environ)
    run("make", "altinstall", *names, cwd=build, environ=environ)


if __name__ == "__main__":
    main(ROOT / sys.argv[1])
