"""A program attached by the .pth file sees no difference, and is observed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opscope.attachment import ledger
from opscope.installation import path_file
from tests.attachment.test_injection import LOOK
from tests.installation.conftest import Venv

PACKAGE = str(Path(ledger.__file__).parent.parent)
HOOKS = "import sys; print(sum(type(f).__name__ == 'ImportHook' for f in sys.meta_path))"


@pytest.fixture
def installed(environment: Venv) -> Venv:
    path_file.put(str(environment.site), PACKAGE)
    return environment


@pytest.mark.parametrize("flags", [(), ("-I",), ("-E",), ("-s",), ("-O",)])
def test_the_program_sees_the_same_world(environment: Venv, flags: tuple[str, ...]) -> None:
    bare = environment.run(*flags, "-c", LOOK)
    path_file.put(str(environment.site), PACKAGE)
    observed = environment.run(*flags, "-c", LOOK)
    assert json.loads(observed.stdout) == json.loads(bare.stdout)
    assert (observed.stderr, bare.stderr) == ("", "")
    assert environment.run(*flags, "-c", HOOKS).stdout == "1\n"


def test_without_site_there_is_nothing(installed: Venv) -> None:
    assert installed.run("-S", "-c", HOOKS).stdout == "0\n"


@pytest.mark.parametrize("flags", [(), ("-I",)])
def test_a_program_is_observed_with_no_variable_set(
    installed: Venv, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    program = "import numpy; import opscope; print(opscope.attach_status().bridges)"
    done = installed.run(*flags, "-c", program, OPSCOPE_DIR=str(tmp_path / "segments"))
    assert (done.stdout, done.stderr) == ("{'numpy': 'attached', 'blas': 'attached'}\n", "")
    assert len(list((tmp_path / "segments").glob("*.seg"))) == 1


@pytest.mark.parametrize("mark", ["0", ""])
def test_a_mark_in_the_environment_switches_it_off(installed: Venv, mark: str) -> None:
    assert installed.run("-c", HOOKS, OPSCOPE_ATTACH=mark).stdout == "0\n"


def test_the_kill_switch_holds(installed: Venv, tmp_path: Path) -> None:
    variables = {"OPSCOPE_ENABLED": "0", "OPSCOPE_DIR": str(tmp_path / "segments")}
    installed.run("-c", "import numpy", **variables)
    (entry,) = ledger.read_all([variables["OPSCOPE_DIR"]])
    assert entry.code == "disabled"


def test_sitecustomize_and_usercustomize_are_left_to_the_user(installed: Venv) -> None:
    (installed.site / "sitecustomize.py").write_text("print('site', __name__)\n")
    (installed.site / "usercustomize.py").write_text("raise SystemExit('not to be run')\n")
    done = installed.run("-c", "import sitecustomize; print(sitecustomize.__file__)")
    assert done.stdout == f"site sitecustomize\n{installed.site / 'sitecustomize.py'}\n"


def test_an_environment_that_a_program_is_run_in_is_attached_to_once(
    installed: Venv, tmp_path: Path
) -> None:
    from opscope.attachment.launch import environment as observed

    variables = observed({"OPSCOPE_DIR": str(tmp_path / "segments")})
    assert installed.run("-c", HOOKS, **variables).stdout == "1\n"
    program = "import numpy, opscope; print(opscope.attach_status().attached)"
    assert installed.run("-c", program, **variables).stdout == "True\n"
    (segment,) = (tmp_path / "segments").glob("*.seg")
    assert b"opscope.passed_over" not in segment.read_bytes()
