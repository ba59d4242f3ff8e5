"""Programs started other than by `python script.py` run as if unobserved."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipapp
from pathlib import Path

import pytest

from opscope.attachment.launch import SITE

from .conftest import Bench
from .test_injection import same


def test_a_zipped_program_is_observed(bench: Bench) -> None:
    bench.script("app/__main__.py", "import numpy, sys; print(sys.argv[1:]); sys.exit(3)\n")
    archive = bench.directory / "app.pyz"
    zipapp.create_archive(bench.directory / "app", archive)
    assert same(bench, str(archive), "word").returncode == 3
    (segment,) = bench.segment_files()
    assert b"\0program\0app.pyz\0" in segment.read_bytes()


def test_a_program_whose_lines_python_counts_is_observed(bench: Bench) -> None:
    """`python -m trace` opens the file of each line that it has counted."""
    program = bench.script("work.py", "import numpy\nprint(numpy.__version__)\n")
    counted = ("-m", "trace", "--count", "--missing", "-C", str(bench.directory / "counted"))
    assert same(bench, *counted, program).returncode == 0
    assert len(bench.segment_files()) == 1
    assert (bench.directory / "counted" / "work.cover").read_text().startswith("    1: import")


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program frozen by PyInstaller, with its own interpreter."""
    place = tmp_path_factory.mktemp("frozen")
    (place / "numpy").mkdir()
    (place / "numpy" / "__init__.py").write_text("__version__ = '99.0'\n")
    (place / "work.py").write_text(
        "import numpy, sys\n"
        "print(numpy.__version__, 'sitecustomize' in sys.modules, len(sys.meta_path))\n"
        "sys.exit(4)\n"
    )
    # Without PyInstaller's hooks for the real numpy, which would pack all of its dependencies.
    command = (sys.executable, "-m", "PyInstaller", "--onedir", "--log-level", "ERROR")
    environ = {**os.environ, "PYTHONPATH": str(place), "PYINSTALLER_CONFIG_DIR": str(place)}
    done = subprocess.run(
        [*command, "--paths", place, "work.py"],
        cwd=place,
        env=environ,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return place / "dist" / "work" / "work"


@pytest.mark.slow
def test_a_frozen_program_runs_unchanged_and_unobserved(bench: Bench, frozen: Path) -> None:
    bare = bench.start([str(frozen)], bench.bare)
    observed = bench.start([str(frozen)], bench.stub_environment())
    assert (observed.returncode, observed.stdout, observed.stderr) == (
        bare.returncode,
        bare.stdout,
        bare.stderr,
    )
    assert observed.returncode == 4
    assert not bench.segments.exists()


@pytest.mark.parametrize("sampling", ["1", "2"])
@pytest.mark.parametrize("streams", ["None", "type('Closed', (), {})()"])
def test_a_program_without_standard_streams_goes_on(
    bench: Bench, sampling: str, streams: str
) -> None:
    # As under pythonw, in daemons, and where a program puts something of its own there.
    program = (
        f"import sys, os; sys.stdout = sys.stderr = {streams}\n"
        "import numpy\nos.write(1, b'on')\nos._exit(6)"
    )
    done = bench.run("-c", program, OPSCOPE_DEBUG="1", OPSCOPE_SAMPLING=sampling)
    assert (done.returncode, done.stdout, done.stderr) == (6, "on", "")


# Root takes another real user, as a setuid program has; for others the answer is made up.
SETUID = """
import os, sys
if os.geteuid() == 0:
    os.setresuid(65534, 0, 0)
else:
    os.getuid = lambda: 65534
sys.path.insert(0, {site!r})
sys.modules.pop("sitecustomize", None)
try:
    import sitecustomize
except ImportError:
    pass
print([f for f in sys.meta_path if type(f).__name__ == "ImportHook"])
import numpy, opscope
opscope.attach()
print(opscope.attach_status().code)
"""


def test_a_setuid_process_is_unobserved_and_leaves_no_file(bench: Bench) -> None:
    done = bench.run("-c", SETUID.format(site=SITE), OPSCOPE_DIR=str(bench.segments))
    hooks, code = done.stdout.splitlines()
    assert (code, done.stderr) == ("other-user", "")
    # Its start came before the change; what is started after it waits for nothing.
    assert hooks.count("ImportHook") == 1
    assert not bench.segments.exists()


def test_the_environment_of_children_is_what_the_program_was_started_with(bench: Bench) -> None:
    program = (
        "import json, os, subprocess, sys\n"
        "before = dict(os.environ)\n"
        "import numpy\n"
        "out = subprocess.run(['env', '-0'], capture_output=True).stdout.decode()\n"
        "child = dict(e.split('=', 1) for e in out.split('\\0') if e)\n"
        "started = open('/proc/self/environ').read()\n"
        "started = dict(e.split('=', 1) for e in started.split('\\0') if e)\n"
        "started.setdefault('LC_CTYPE', before.get('LC_CTYPE'))\n"
        "child.setdefault('LC_CTYPE', before.get('LC_CTYPE'))\n"
        "print(before == dict(os.environ), child == started)\n"
    )
    assert bench.run("-c", program).stdout == "True True\n"
    assert len(bench.segment_files()) == 1


@pytest.mark.parametrize(
    ("arguments", "variables", "expected"),
    [
        (("-m", "pip", "--version"), {}, "denied"),
        (("-m", "py_compile", "work.py"), {}, None),
        (("work.py",), {"OPSCOPE_INCLUDE": "serve*,work*"}, "observed"),
        (("work.py",), {"OPSCOPE_INCLUDE": "serve*"}, "not-included"),
        (("work.py",), {"OPSCOPE_INCLUDE": "*", "OPSCOPE_EXCLUDE": "*/work.py"}, "observed"),
        (("./work.py",), {"OPSCOPE_EXCLUDE": "*/work.py"}, "denied"),
        (("-m", "work"), {"OPSCOPE_EXCLUDE": "work"}, "denied"),
    ],
)
def test_lists_and_globs_mean_real_programs(
    bench: Bench, arguments: tuple[str, ...], variables: dict[str, str], expected: str | None
) -> None:
    bench.script("work.py", "import numpy\n")
    # Any version of pip that imports what would be observed.
    bench.script("stub/pip/__init__.py", "")
    bench.script("stub/pip/__main__.py", "import numpy\n")
    environ = bench.stub_environment(OPSCOPE_BRIDGES="none", **variables)
    assert bench.start([sys.executable, *arguments], environ).returncode == 0
    found = ["observed" for _ in bench.segment_files()] + bench.codes()
    assert found == ([expected] if expected else [])


def test_a_relocated_interpreter_runs_unchanged(bench: Bench) -> None:
    link = bench.directory / "renamed"
    shutil.copy(os.path.realpath(sys.executable), link)
    bench.bare["PYTHONHOME"] = sys.base_prefix
    program = "import numpy; print(numpy.__version__)"
    assert same(bench, "-c", program, python=str(link)).returncode == 0
