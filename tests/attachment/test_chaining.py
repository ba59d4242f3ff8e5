"""The user's own sitecustomize and usercustomize run in every form that Python accepts."""

from __future__ import annotations

import importlib.machinery
import py_compile
import sysconfig
import zipfile
from pathlib import Path

import pytest

from .conftest import Bench
from .test_injection import same

OWN = "print('own', __name__)\nvalue = 5\n"
SHOW = "import sitecustomize as s; print(s.value, s.__file__, type(s.__loader__).__name__)"


@pytest.mark.parametrize("form", ["sitecustomize.py", "sitecustomize/__init__.py"])
def test_a_module_or_a_package_runs(bench: Bench, form: str) -> None:
    bench.script(f"stub/{form}", OWN)
    assert same(bench, "-c", SHOW).stdout.startswith("own sitecustomize\n5 ")


def test_bytecode_without_source_runs(bench: Bench) -> None:
    source = bench.script("own.py", OWN)
    py_compile.compile(source, str(bench.stub / "sitecustomize.pyc"), doraise=True)
    assert same(bench, "-c", SHOW).stdout.endswith("SourcelessFileLoader\n")


def test_one_in_a_zip_file_runs(bench: Bench) -> None:
    archive = bench.directory / "own.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("sitecustomize.py", OWN)
    path = f"{archive}:{bench.stub}"
    bare = bench.run("-c", SHOW, observed=False, stub=False, PYTHONPATH=path)
    observed = bench.run("-c", SHOW, stub=False, PYTHONPATH=path)
    assert observed.stdout == bare.stdout
    assert observed.stdout.endswith("zipimporter\n")


def test_a_folder_without_a_module_is_the_package_that_it_always_was(bench: Bench) -> None:
    (bench.stub / "sitecustomize").mkdir()
    program = "import sitecustomize as s; print(s.__file__, list(s.__path__), s.__spec__.origin)"
    assert same(bench, "-c", program).stdout == f"None ['{bench.stub}/sitecustomize'] None\n"


def test_an_extension_module_runs(bench: Bench) -> None:
    # Its init function has another name, so Python refuses it: with its own message, as ever.
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    library = next(Path(str(sysconfig.get_config_var("DESTSHARED"))).glob(f"*{suffix}"))
    (bench.stub / f"sitecustomize{suffix}").symlink_to(library)
    same(bench, "-c", "import sys; print('sitecustomize' in sys.modules)")


def test_a_sitecustomize_that_prints_or_inspects_sees_no_difference(bench: Bench) -> None:
    bench.script(
        "stub/sitecustomize.py",
        "import sys\n"
        "print(__file__, __spec__.origin, __name__ in sys.modules)\n"
        "print([p for p in sys.path if 'opscope' in p and 'site' in p.rpartition('/')[2]])\n"
        "sys.stderr.write('complaint\\n')\n",
    )
    assert same(bench, "-c", "print('program')").stderr == "complaint\n"


def test_usercustomize_is_untouched(bench: Bench) -> None:
    # Is imported only where the user's directory is enabled; forced here, as virtual ones are not.
    bench.script("stub/usercustomize.py", "print('user', __name__)\nraise ValueError('own')\n")
    program = "import site; site.ENABLE_USER_SITE = True; site.execusercustomize()"
    assert same(bench, "-c", program).stdout == "user usercustomize\n"
