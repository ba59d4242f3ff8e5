"""The GitHub Action: its script runs as the runner runs it, with the inputs as variables."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parent.parent.parent
ACTION = yaml.safe_load((ROOT / ".github/actions/bench-compare/action.yml").read_text())
ADD = "import numpy; x = numpy.ones(3); [numpy.add(x, 1) for _ in range({})]"


def ran(tmp_path: Path, **inputs: str) -> tuple[int, dict[str, str], str]:
    """The step's status, its outputs, and the summary of the job."""
    (step,) = ACTION["runs"]["steps"]
    values = {
        name: inputs.get(name.replace("-", "_"), one.get("default", ""))
        for name, one in ACTION["inputs"].items()
    }
    environ = {
        key: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: str(values[found[1]]), text)
        for key, text in step["env"].items()
    }
    environ |= {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
    }
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        env=environ,
        capture_output=True,
        text=True,
        timeout=300,
    )
    outputs = (tmp_path / "output").read_text() if (tmp_path / "output").exists() else ""
    found = dict(re.findall(r"^(\w+)=(.*)$", outputs, re.M))
    found |= dict(re.findall(r"^(\w+)<<(?:.*)\n((?:.*\n)*?)end-of-regressions$", outputs, re.M))
    summary = (tmp_path / "summary").read_text() if (tmp_path / "summary").exists() else ""
    return done.returncode, found, summary


@pytest.mark.parametrize(("fail", "status"), [("true", 1), ("false", 0)])
def test_a_slower_change_fails_the_step_and_is_in_the_summary(
    tmp_path: Path, fail: str, status: int
) -> None:
    python = f"'{sys.executable}' -c '"
    got, outputs, summary = ran(
        tmp_path,
        a=python + ADD.format(50) + "'",
        b=python + ADD.format(99) + "'",
        rounds="2",
        thresholds="wall=100000\ncpu=100000\n",
        fail=fail,
    )
    assert got == status
    assert outputs["regressions"] == "numpy::add\n"
    assert Path(outputs["json"]).exists()
    assert "**more calls**" in summary


def test_a_command_that_fails_fails_the_step_without_a_result(tmp_path: Path) -> None:
    got, outputs, _ = ran(tmp_path, a="true", b="exit 3", rounds="2", fail="false")
    assert (got, outputs) == (2, {})


def test_the_script_takes_inputs_from_variables_alone() -> None:
    (step,) = ACTION["runs"]["steps"]
    assert "${{" not in step["run"]
