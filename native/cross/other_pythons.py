"""Try the wheels with Pythons that this machine need not have: the newest, and those for musl.

Usage: python -m native.cross.other_pythons DIRECTORY-OF-WHEELS

All are of Debian and lie below build/cross, made the first time. CPython 3.14 and 3.15 are unpacked
from their packages, with their own C library. Debian has no Python for musl, so one is compiled
from Debian's source in two minutes, with the compiler of the wheels, and another for aarch64, which
is emulated. They lack OpenSSL: the Python that runs this downloads what they install. Nothing needs
root. This is for x86-64 alone.

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

from native.cross import debian, emulator
from native.cross.build import ROOT, run
from native.cross.debian_python import debian_python
from native.cross.musl_python import VERSION as MUSL_VERSION
from native.cross.musl_python import musl_python
from native.cross.targets import TARGETS, Target
from native.cross.try_wheel import only_wheel

MUSL = tuple(target for target in TARGETS.values() if target.libc == "musl")
NEWER = ("3.14", "3.15")
"""The versions of CPython that this machine need not have."""
TRIAL = Path(__file__).with_name("try_wheel.py")
_BESIDES = ("libzstd1",)
"""What CPython needs besides, from 3.14 on."""


def main(directory: Path) -> None:
    if (machine := os.uname().machine) != "x86_64":
        raise SystemExit(f"these Pythons are for x86-64 alone, and this machine is {machine}")
    wheels = {target: only_wheel(directory, _wheel_for(target)) for target in MUSL}
    trials: dict[str, Callable[[], None]] = {
        f"CPython {version}": partial(try_newer, version, directory) for version in NEWER
    }
    for target, wheel in wheels.items():
        trials[f"CPython for musl, {target.machine}"] = partial(try_on_musl, target, wheel)
    missing = []
    for name, trial in trials.items():
        try:
            trial()
        except debian.UnavailableError as error:
            print(f"not tried with {name}: {error}", flush=True)
            missing.append(name)
    if missing:
        raise SystemExit(f"not tried with {'; '.join(missing)}")


def try_newer(version: str, directory: Path) -> None:
    subprocess.run([debian_python(version, "sid", _BESIDES), TRIAL, directory], check=True)


def try_on_musl(target: Target, wheel: Path) -> None:
    emulated = target.machine != os.uname().machine
    python = [*(emulator.prefix() if emulated else []), str(musl_python(target))]
    with tempfile.TemporaryDirectory() as packages:
        run(
            *(sys.executable, "-m", "pip", "download", "--only-binary=:all:", "--dest", packages),
            *(f"--platform={target.platform}", f"--python-version={MUSL_VERSION}"),
            f"{wheel}[agent]",
        )
        environ = os.environ | {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": packages}
        subprocess.run([*python, TRIAL, wheel], env=environ, check=True)


def _wheel_for(target: Target) -> str:
    return f"opscope-*-abi3-{target.platform}.whl"


if __name__ == "__main__":
    main(ROOT / sys.argv[1])
