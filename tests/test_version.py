"""The version is in one place, the package's `__version__`; everything else reads it there."""

import re
import sys
from importlib import metadata
from pathlib import Path

import pytest

import opscope
from opscope.bench.scrape import snapshot_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent


def test_the_package_is_built_with_the_version_of_its_source() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "version" not in project
    assert "version" in project["dynamic"]
    assert metadata.version("opscope") == opscope.__version__


def test_images_in_the_manifests_are_of_this_version() -> None:
    files = [path for path in (ROOT / "agent" / "deploy").iterdir() if path.is_file()]
    tags = [tag for path in files for tag in re.findall(r"/opscope:(\S+)", path.read_text())]
    assert tags
    assert set(tags) == {opscope.__version__}


def test_the_changelog_begins_with_this_version() -> None:
    first = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert first
    assert first[1] == opscope.__version__


def test_an_export_does_not_read_the_packages_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> str:
        raise AssertionError(f"the metadata of {name} is read")

    snapshot = snapshot_of(1, 0)
    monkeypatch.setattr(metadata, "version", refuse)
    ((version, _, _),) = snapshot.build_info
    assert version == opscope.__version__
