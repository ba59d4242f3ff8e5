"""The package can be built as source and as wheel, and works where nothing else is installed."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent

BUILD_SDIST = """
import sys
from scikit_build_core.build import build_sdist
print(build_sdist(sys.argv[1]))
"""


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build_wheel(source: Path, into: Path) -> Path:
    run(
        *(sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps"),
        *("--config-settings=build-dir=" + str(into / "build"), "--wheel-dir", into, source),
        "--config-settings=cmake.define.OPSCOPE_CPU_LEVELS=OFF",
    )
    (wheel,) = into.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from the source distribution, which must therefore be complete."""
    place = tmp_path_factory.mktemp("sdist")
    name = run(sys.executable, "-c", BUILD_SDIST, place).split()[-1]
    return build_wheel(place / name, tmp_path_factory.mktemp("wheel"))


def test_the_wheel_holds_both_packages_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"opscope", "opscope_exporters"}
    assert {
        "opscope/_native.abi3.so",
        "opscope/_tensor.abi3.so",
        "opscope/libopscope.so",
        "opscope/libopscope_tensor.so",
        "opscope/py.typed",
        "opscope/attachment/site/sitecustomize.py",
        "opscope/attachment/site/opscope_beside.egg-info/entry_points.txt",
        "opscope/include/opscope/record.h",
        "opscope_exporters/py.typed",
    } <= set(names)


def test_the_wheel_serves_every_later_python(wheel: Path) -> None:
    assert "-cp310-abi3-linux" in wheel.name


def test_the_wheel_of_the_tree_is_that_of_its_source_distribution(
    wheel: Path, tmp_path: Path
) -> None:
    of_tree = build_wheel(ROOT, tmp_path)
    assert of_tree.name == wheel.name
    assert set(zipfile.ZipFile(of_tree).namelist()) == set(zipfile.ZipFile(wheel).namelist())


def test_the_wheel_runs_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    programs = tmp_path / "venv" / "bin"
    run(programs / "python", "-m", "pip", "install", "--quiet", wheel)
    version = wheel.name.split("-")[1]
    assert version in run(programs / "opscope", "--version", cwd=tmp_path)
