"""Several opscopes available to a process: one handles it, and names those it passed over."""

from __future__ import annotations

import shutil
from pathlib import Path

import _cffi_backend
import pytest

from opscope import __version__, _native
from opscope.attachment.launch import SITE

from .conftest import Bench

OTHER = "99.1.0"
PROGRAM = (
    "import numpy, opscope, opscope.attachment.session as session;"
    "print(opscope.__version__, opscope.attach_status().attached);"
    "print({m.__file__.partition('/attachment')[0].partition('/record')[0] for n, m in"
    " __import__('sys').modules.items() if n.startswith(('opscope.attach', 'opscope.record'))})"
)


@pytest.fixture
def other(bench: Bench) -> Path:
    """A package of another version, whole but for the library, which it shares."""
    package = bench.directory / "other" / "opscope"
    ignored = shutil.ignore_patterns("*.so", "__pycache__", "tensor", "bench", "cli", "agent")
    shutil.copytree(Path(SITE).parent.parent, package, ignore=ignored)
    init = package / "__init__.py"
    init.write_text(init.read_text().replace(f'"{__version__}"', f'"{OTHER}"'))
    for library in Path(_native.__file__).parent.glob("*.so"):
        (package / library.name).symlink_to(library)
    backend = Path(_cffi_backend.__file__)
    (package.parent / backend.name).symlink_to(backend)
    return package


def passed_over(bench: Bench) -> str:
    (segment,) = bench.segment_files()
    _, found, rest = segment.read_bytes().partition(b"\0opscope.passed_over\0")
    return rest.partition(b"\0")[0].decode() if found else ""


def test_the_one_that_the_program_would_import_has_the_process(
    bench: Bench, other: Path, bare_python: str
) -> None:
    # The start is this opscope's; `import opscope` gives the other.
    path = f"{SITE}:{other.parent}:{bench.stub}"
    environ = {**bench.bare, "OPSCOPE_DIR": str(bench.segments), "OPSCOPE_ATTACH": "1"}
    done = bench.start([bare_python, "-c", PROGRAM], {**environ, "PYTHONPATH": path})
    assert (done.stdout, done.stderr) == (f"{OTHER} True\n{{'{other}'}}\n", "")
    assert passed_over(bench) == str(Path(SITE).parent.parent)


def test_the_first_on_the_path_starts_where_none_can_be_imported(
    bench: Bench, other: Path, bare_python: str
) -> None:
    third = bench.directory / "third" / "opscope"
    shutil.copytree(other, third, symlinks=True)
    path = f"{other}/attachment/site:{third}/attachment/site:{bench.stub}"
    environ = {**bench.bare, "OPSCOPE_DIR": str(bench.segments), "OPSCOPE_ATTACH": "1"}
    done = bench.start([bare_python, "-c", PROGRAM], {**environ, "PYTHONPATH": path})
    assert (done.stdout, done.stderr) == (f"{OTHER} True\n{{'{other}'}}\n", "")
    assert passed_over(bench) == str(third / "attachment")


def test_only_one_hook_waits(bench: Bench, other: Path) -> None:
    program = "import sys; print([type(f).__name__ for f in sys.meta_path].count('ImportHook'))"
    done = bench.run("-c", program, PYTHONPATH=f"{other}/attachment/site")
    assert done.stdout == "1\n"
