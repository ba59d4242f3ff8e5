"""The payload is self-contained wherever it is copied to, and is removed completely."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import _cffi_backend
import pytest

import opscope as package
from opscope.attachment import ledger
from opscope.attachment.entry import THIS_MACHINE
from tests.attachment.conftest import OTHER_INTERPRETERS
from tests.installation.conftest import contents, opscope

PYTHON = ".".join(map(str, sys.version_info[:2]))
LOOK = (
    "import numpy, sys; loaded = sorted(m for m in sys.modules if 'cffi' in m);"
    "import opscope; print(loaded, opscope.attach_status().attached,"
    " [p for p in sys.path if 'payload' in p], opscope.__file__)"
)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Written once and copied, as an init container does."""
    place = tmp_path_factory.mktemp("payload") / "made"
    done = opscope("install", "--payload", place)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"for Python {PYTHON} on " in done.stdout
    copy = place.parent / "payload"
    shutil.copytree(place, copy)
    shutil.rmtree(place)
    return copy


def run(
    payload: Path, place: Path, *arguments: str, python: str = "", **environ: str
) -> subprocess.CompletedProcess[str]:
    """A program of an interpreter without installed packages, with a stub of numpy."""
    stub = place / "stub" / "numpy"
    stub.mkdir(parents=True, exist_ok=True)
    (stub / "__init__.py").write_text("__version__ = '99.0'\n")
    variables = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{payload}/site:{stub.parent}",
        "OPSCOPE_ATTACH": "1",
        "OPSCOPE_DIR": str(place / "segments"),
        "PYTHONDONTWRITEBYTECODE": "1",
        **environ,
    }
    return subprocess.run(
        [python, *arguments], env=variables, capture_output=True, text=True, cwd=place
    )


def test_an_interpreter_with_nothing_installed_is_observed(
    written: Path, tmp_path: Path, bare_python: str
) -> None:
    done = run(written, tmp_path, "-c", LOOK, python=bare_python)
    expected = f"['opscope._cffi_backend'] True [] {written}/opscope/__init__.py\n"
    assert (done.stdout, done.stderr) == (expected, "")
    assert len(list((tmp_path / "segments").glob("*.seg"))) == 1


def test_it_works_in_a_read_only_place(written: Path, tmp_path: Path, bare_python: str) -> None:
    before = contents(written)
    done = run(written, tmp_path, "-c", LOOK, python=bare_python, PYTHONDONTWRITEBYTECODE="")
    assert " True " in done.stdout
    # The payload contains all bytecode it needs.
    assert contents(written) == before


def test_the_programs_own_cffi_of_another_version_is_not_met(
    written: Path, tmp_path: Path, bare_python: str
) -> None:
    (tmp_path / "stub").mkdir()
    (tmp_path / "stub" / "_cffi_backend.py").write_text("__version__ = '1.0'\n")
    program = "import numpy, _cffi_backend, opscope; print(_cffi_backend.__version__)"
    done = run(written, tmp_path, "-c", program, python=bare_python)
    assert (done.stdout, done.stderr) == ("1.0\n", "")


@pytest.mark.parametrize("python", OTHER_INTERPRETERS, ids=os.path.basename)
def test_another_python_goes_on_and_says_why_it_is_not_observed(
    written: Path, tmp_path: Path, python: str
) -> None:
    program = "import numpy; print(numpy.__version__)"
    done = run(
        written, tmp_path, "-S" if "python2" in python else "-s", "-c", program, python=python
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "99.0\n", "")
    codes = [entry.code for entry in ledger.read_all([str(tmp_path / "segments")])]
    same_abi = (
        subprocess.run(
            [python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
            capture_output=True,
            text=True,
        ).stdout.strip()
        == PYTHON
    )
    assert codes in ([], ["bridge"]) if same_abi else codes in ([], ["opscope-missing"], ["bridge"])


def test_it_is_written_again_and_removed_completely(tmp_path: Path) -> None:
    place = tmp_path / "payload"
    for _ in range(2):
        assert opscope("install", "--payload", place).returncode == 0
        # As Python does if it may write.
        (place / "opscope" / "__pycache__" / "errors.cpython-399.pyc").write_bytes(b"")
    status = opscope("status", "--payload", place)
    assert (status.returncode, f"for Python {PYTHON}" in status.stdout) == (0, True)
    assert opscope("uninstall", "--payload", place).returncode == 0
    assert os.listdir(tmp_path) == []
    assert opscope("status", "--payload", place).returncode == 1


def test_writing_it_again_leaves_mapped_files_unchanged(tmp_path: Path) -> None:
    place = tmp_path / "payload"
    assert opscope("install", "--payload", place).returncode == 0
    files = [path.open("rb") for path in place.rglob("*.so")]
    sizes = [os.fstat(file.fileno()).st_size for file in files]
    assert opscope("install", "--payload", place).returncode == 0
    found = [os.fstat(file.fileno()) for file in files]
    assert [(one.st_nlink, one.st_size) for one in found] == [(0, size) for size in sizes]
    for file in files:
        file.close()


def test_a_directory_that_was_there_stays(tmp_path: Path) -> None:
    assert opscope("install", "--payload", tmp_path).returncode == 0
    assert set(os.listdir(tmp_path)) == {"opscope", "machines", "cffi", "payload.json", "site"}
    assert opscope("uninstall", "--payload", tmp_path).returncode == 0
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("spoil", ["added", "changed", "removed"])
def test_changed_files_are_not_removed(written: Path, tmp_path: Path, spoil: str) -> None:
    place = tmp_path / "payload"
    shutil.copytree(written, place)
    file = place / "opscope" / ("own.py" if spoil == "added" else "errors.py")
    if spoil == "removed":
        file.unlink()
    else:
        file.write_text("")
    before = contents(place)
    for command in ("uninstall", "install", "status"):
        done = opscope(command, "--payload", place)
        assert done.returncode == 1, command
        assert (
            f"({file.relative_to(place)}); restore or remove it yourself"
            in done.stdout + done.stderr
        )
    assert contents(place) == before


def test_a_directory_with_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "own").touch()
    done = opscope("install", "--payload", tmp_path)
    assert (done.returncode, "choose an empty directory" in done.stderr) == (1, True)
    assert os.listdir(tmp_path) == ["own"]


def wheel(place: Path, version: str, *names: str) -> Path:
    path = place / f"cffi-{version}-cp399-cp399-manylinux_2_17_x86_64.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.write(_cffi_backend.__file__, name)
    return path


def test_wheels_of_cffi_add_other_pythons(tmp_path: Path) -> None:
    wheel(tmp_path, "2.5.0", "_cffi_backend.cpython-399-x86_64-linux-gnu.so", "cffi/api.py")
    place = tmp_path / "payload"
    arguments = ("install", "--payload", place, "--cffi", tmp_path, "--python", sys.executable)
    done = opscope(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    listed = json.loads((place / "payload.json").read_text())
    assert listed["machines"] == {THIS_MACHINE: [PYTHON, "3.99"]}
    assert len(os.listdir(place / "cffi")) == 2


def wheel_of_opscope(place: Path, version: str = package.__version__) -> Path:
    path = place / f"opscope-{version}-cp310-abi3-manylinux_2_27_s390x.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("opscope/_native.abi3.so", "of s390x")
        archive.writestr("opscope/_tensor.abi3.so", "of s390x")
        archive.writestr("opscope/errors.py", "raise SystemExit")
    return path


def test_a_wheel_of_opscope_adds_another_kind_of_machine(tmp_path: Path, bare_python: str) -> None:
    wheel(tmp_path, "2.5.0", "_cffi_backend.cpython-399-s390x-linux-gnu.so")
    place = tmp_path / "payload"
    arguments = ("install", "--payload", place, "--cffi", tmp_path, "--python", sys.executable)
    done = opscope(*arguments, "--wheel", wheel_of_opscope(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    expected = {THIS_MACHINE: [PYTHON], "s390x-linux-gnu": ["3.99"]}
    assert json.loads((place / "payload.json").read_text())["machines"] == expected
    assert f"for Python 3.99 on s390x-linux-gnu; Python {PYTHON} on {THIS_MACHINE}" in done.stdout
    libraries = place / "machines" / "s390x-linux-gnu"
    assert os.listdir(libraries) == ["_native.abi3.so"]
    assert (libraries / "_native.abi3.so").read_text() == "of s390x"
    assert " True " in run(place, tmp_path, "-c", LOOK, python=bare_python).stdout
    assert opscope("uninstall", "--payload", place).returncode == 0
    assert not place.exists()


def test_a_kind_of_machine_without_cffi_is_refused(tmp_path: Path) -> None:
    arguments = ("install", "--payload", tmp_path / "payload", "--wheel")
    done = opscope(*arguments, wheel_of_opscope(tmp_path))
    assert (done.returncode, "no cffi for s390x-linux-gnu" in done.stderr) == (1, True)
    assert not (tmp_path / "payload").exists()


def test_a_wheel_of_another_opscope_is_refused(tmp_path: Path) -> None:
    arguments = ("install", "--payload", tmp_path / "payload", "--wheel")
    done = opscope(*arguments, wheel_of_opscope(tmp_path, "9.9.9"))
    assert (done.returncode, "not a wheel of opscope 0." in done.stderr) == (1, True)
    assert not (tmp_path / "payload").exists()


def test_an_old_cffi_is_refused_and_nothing_written(tmp_path: Path) -> None:
    old = wheel(tmp_path, "1.17.0", "_cffi_backend.cpython-399-x86_64-linux-gnu.so")
    done = opscope("install", "--payload", tmp_path / "payload", "--cffi", old)
    assert (done.returncode, "not a wheel of cffi 2.0 or later" in done.stderr) == (1, True)
    assert not (tmp_path / "payload").exists()


def test_a_wheel_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = opscope("install", "--payload", tmp_path / "payload", "--cffi", tmp_path / "none.whl")
    assert (done.returncode, "none.whl: no such file" in done.stderr) == (1, True)
    assert not (tmp_path / "payload").exists()


def test_an_interpreter_without_cffi_is_reported(tmp_path: Path, bare_python: str) -> None:
    done = opscope("install", "--payload", tmp_path / "payload", "--python", bare_python)
    assert done.returncode == 1
    assert f"{bare_python} -m pip install 'cffi>=2.0'" in done.stderr


def test_coverage_reports_the_program_alone(
    written: Path, tmp_path: Path, bare_python: str
) -> None:
    """As without opscope, although its files lie where a program's might."""
    import coverage

    packages = tmp_path / "packages"
    packages.mkdir()
    os.symlink(Path(coverage.__file__).parent, packages / "coverage")
    (tmp_path / "main.py").write_text(
        "import numpy, sys, multiprocessing\n"
        "if 'opscope' in sys.modules:\n"
        "    import opscope\n"
        "    opscope.add_global_callback(lambda fn: None)\n"
        "    with opscope.debug_info(a=1), opscope.record_function('x'): pass\n"
        "    print(opscope.attach_status().attached)\n"
    )
    path = f"{written}/site:{tmp_path / 'stub'}:{packages}"
    done = run(
        written, tmp_path, "-m", "coverage", "run", "main.py", python=bare_python, PYTHONPATH=path
    )
    assert (done.stdout, done.stderr) == ("True\n", "")
    found = coverage.CoverageData(str(tmp_path / ".coverage"))
    found.read()
    reported = {os.path.relpath(file, tmp_path) for file in found.measured_files()}
    assert reported == {"main.py", "stub/numpy/__init__.py"}
