"""Build the package: its source distribution, and wheels for this machine or for a target."""

import os
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

from native.cross.targets import Target

ROOT = Path(__file__).parent.parent.parent

_BUILD_SDIST = """
import sys
from scikit_build_core.build import build_sdist
print(build_sdist(sys.argv[1]))
"""


def run(*command: str | Path, cwd: Path = ROOT, environ: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(
        command, cwd=cwd, env=environ, capture_output=True, text=True, timeout=1800
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build_sdist(into: Path) -> Path:
    return into / run(sys.executable, "-c", _BUILD_SDIST, into).split()[-1]


def unpack(source_distribution: Path, into: Path) -> None:
    """Leaves files alone that are there with the same bytes: the next build compiles the others."""
    wanted = set()
    with tarfile.open(source_distribution) as archive:
        for member in archive:
            content = archive.extractfile(member)
            if content is None:
                continue
            path = into.joinpath(*Path(member.name).parts[1:])
            wanted.add(path)
            data = content.read()
            if not path.exists() or path.read_bytes() != data:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            path.chmod(member.mode)
    for path in into.rglob("*"):
        if path.is_file() and path not in wanted:
            path.unlink()


def build_wheel(
    source: Path,
    into: Path,
    target: Target | None = None,
    cpu_levels: bool = False,
    python: Path | None = None,
    build: Path | None = None,
) -> Path:
    """Builds a wheel of the source distribution or tree, for this machine without a target.

    The operators for AVX2 and AVX-512 treble the time it takes; tests do without. `python` is an
    interpreter with the build's requirements, and one for which the wheel is: this one, whose wheel
    suits all versions with the GIL, or a free-threaded one. `build` is a folder that keeps what was
    compiled.
    """
    definitions = {"OPSCOPE_CPU_LEVELS": "ON" if cpu_levels else "OFF"}
    definitions |= target.definitions(python) if target else {}
    run(
        *(python or sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps"),
        *("--wheel-dir", into, source, f"--config-settings=build-dir={build or into / 'build'}"),
        *(f"--config-settings=cmake.define.{key}={value}" for key, value in definitions.items()),
        environ=target.environment() if target else os.environ,
    )
    (wheel,) = into.glob("*.whl")
    return wheel
