"""The package can be built as source and as wheel, and works in an empty environment."""

import tarfile
import zipfile
from pathlib import Path

from native.cross.build import ROOT, run
from tests.environments import new_environment, pip
from tests.test_dashboards_export import FILES, written
from tests.test_repository import tracked_files


def test_the_wheel_holds_its_packages_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    packages = {name.split("/")[0].split("-")[0] for name in names}
    assert packages == {"opscope", "opscope_exporters", "pytest_opscope"}
    assert {
        "opscope/_native.abi3.so",
        "opscope/_tensor.abi3.so",
        "opscope/libopscope.so",
        "opscope/libopscope_marks.so",
        "opscope/libopscope_tensor.so",
        "opscope/py.typed",
        "opscope/attachment/site/sitecustomize.py",
        "opscope/attachment/site/opscope_beside.egg-info/entry_points.txt",
        "opscope/include/opscope/record.h",
        "opscope_exporters/py.typed",
        *(f"opscope/shipped/{name}" for name in FILES),
    } <= set(names)
    shipped = [name for name in names if name.startswith("opscope/shipped/")]
    assert len(shipped) == len(FILES)


def test_the_wheel_serves_every_later_python(wheel: Path) -> None:
    assert "-cp310-abi3-linux" in wheel.name


def test_the_modules_ask_python_for_nothing_newer_than_the_abi_of_3_10(
    wheel: Path, tmp_path: Path
) -> None:
    """abi3audit, which `make wheels` runs, knows all names; these are the ones that we use."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    newer = {"PyObject_CheckBuffer", "PyObject_GetBuffer", "PyBuffer_Release"}
    for module in (tmp_path / "opscope").glob("*.abi3.so"):
        assert not newer & set(run("nm", "-D", "--undefined-only", module).split())


def test_the_source_distribution_is_the_tree(source_distribution: Path) -> None:
    """Therefore a wheel that is built from it is also the wheel of the tree."""
    with tarfile.open(source_distribution) as archive:
        files = {
            Path(*Path(member.name).parts[1:]): archive.extractfile(member)
            for member in archive
            if member.isfile()
        }
        assert files.pop(Path("PKG-INFO"))
        tree = {path for path in tracked_files() if path.parts[0] not in (".ci", ".github")}
        assert set(files) == tree
        for path, file in files.items():
            assert file and file.read() == (ROOT / path).read_bytes(), path


def test_the_wheel_runs_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    programs = new_environment(tmp_path / "venv") / "bin"
    pip(tmp_path / "venv", "install", "--quiet", f"{wheel}[agent]")
    version = wheel.name.split("-")[1]
    assert version in run(programs / "opscope", "--version", cwd=tmp_path)
    run(programs / "opscope", "dashboards", "export", tmp_path / "files", cwd=tmp_path)
    assert written(tmp_path / "files") == {name: path.read_bytes() for name, path in FILES.items()}
