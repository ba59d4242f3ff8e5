"""Workflows, `.ci/run` and documents name targets of the Makefile, and CI runs all checks."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TARGETS = {
    name
    for line in (ROOT / "Makefile").read_text().splitlines()
    if (found := re.match(r"([a-z][a-z0-9 -]*):(?!=)", line))
    for name in found[1].split()
}
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
RUN = ROOT / ".ci" / "run"
DOCUMENTS = [
    ROOT / name for name in ("README.md", "CONTRIBUTING.md", ".github/pull_request_template.md")
]


def commands(path: Path) -> list[str]:
    """The lines that call make, with their variables; comments do not count."""
    lines = (line.strip().removeprefix("- run: ") for line in path.read_text().splitlines())
    return [line for line in lines if line.startswith("make ")]


@pytest.mark.parametrize("path", [RUN, *WORKFLOWS], ids=lambda path: path.name)
def test_ci_runs_targets_that_exist(path: Path) -> None:
    found = commands(path)
    assert found
    assert {command.split()[1] for command in found} <= TARGETS


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_documents_name_targets_that_exist(path: Path) -> None:
    assert set(re.findall(r"`make ([a-z0-9-]+)", path.read_text())) <= TARGETS


def test_the_workflow_of_a_change_runs_what_ci_runs() -> None:
    workflow = commands(ROOT / ".github" / "workflows" / "ci.yml")
    assert set(workflow) == {*commands(RUN), "make check"}


def test_every_target_is_listed_as_phony() -> None:
    (phony,) = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.M)
    assert set(phony.split()) == TARGETS
