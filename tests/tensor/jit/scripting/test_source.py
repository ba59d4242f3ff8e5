"""Scripting needs the source: beside a .pyc, or in a zip file; without it, an error says so."""

from __future__ import annotations

import importlib
import py_compile
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from opscope import ScriptError
from opscope import tensor as ot
from opscope.tensor import jit

SOURCE = '''"""A model."""

from opscope import tensor as ot


class Namespace:
    def double(x):
        """Indented, with a text
of several lines."""
        return x * 2


double = Namespace.double
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("deployed_")]:
        del sys.modules[name]


def check_runs(name: str) -> None:
    module = importlib.import_module(name)
    assert ot.equal(jit.script(module.double)(ot.ones(2)), ot.ones(2) * 2)


def check_refused(name: str) -> None:
    module = importlib.import_module(name)
    with pytest.raises(ScriptError, match=f"(?s)not deployed.*{name}.py.*deploy {name}.py beside"):
        jit.script(module.double)


def compiled(folder: Path, name: str) -> Path:
    """The .pyc of the source, which is nowhere else."""
    source = folder / "elsewhere" / f"{name}.py"
    source.parent.mkdir()
    source.write_text(SOURCE)
    made = source.with_suffix(".pyc")
    py_compile.compile(str(source), cfile=str(made), doraise=True)
    source.unlink()
    return made


def test_a_source_is_found(folder: Path) -> None:
    (folder / "deployed_source.py").write_text(SOURCE)
    check_runs("deployed_source")


def test_a_pyc_alone_is_refused(folder: Path) -> None:
    compiled(folder, "deployed_pyc").rename(folder / "deployed_pyc.pyc")
    check_refused("deployed_pyc")


def test_a_source_in_a_zip_file_is_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(folder / "models.zip", "w") as archive:
        archive.writestr("deployed_zip.py", SOURCE)
    monkeypatch.syspath_prepend(str(folder / "models.zip"))
    check_runs("deployed_zip")


def test_a_pyc_alone_in_a_zip_file_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = compiled(folder, "deployed_zip_pyc")
    with zipfile.ZipFile(folder / "models.zip", "w") as archive:
        archive.write(made, "deployed_zip_pyc.pyc")
    monkeypatch.syspath_prepend(str(folder / "models.zip"))
    check_refused("deployed_zip_pyc")


def test_code_that_has_no_file_is_refused() -> None:
    names: dict[str, object] = {}
    exec("def double(x):\n    return x * 2\n", names)
    with pytest.raises(ScriptError, match="double: it is in no file"):
        jit.script(names["double"])  # type: ignore[arg-type]
