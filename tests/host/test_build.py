"""The revision of the agent is what git says."""

import re
import subprocess
from importlib import metadata
from pathlib import Path

import pytest

from opscope.host import build

DEPLOY = Path(__file__).parents[2] / "agent" / "deploy"


def git(tree: Path, *words: str) -> str:
    own = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(
        ["git", *own, *words], cwd=tree, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    made = tmp_path / "tree"
    made.mkdir()
    git(made, "init", "-q")
    git(made, "commit", "-q", "--allow-empty", "-m", "one")
    return made


def test_a_branch(tree: Path) -> None:
    assert build.checked_out(tree) == git(tree, "rev-parse", "HEAD")


def test_packed_references(tree: Path) -> None:
    git(tree, "pack-refs", "--all")
    assert not (tree / ".git" / "refs" / "heads" / "main").exists()
    assert build.checked_out(tree) == git(tree, "rev-parse", "HEAD")


def test_a_commit_without_a_branch(tree: Path) -> None:
    git(tree, "checkout", "-q", "--detach")
    assert build.checked_out(tree) == git(tree, "rev-parse", "HEAD")


def test_a_further_work_tree(tree: Path) -> None:
    other = tree.parent / "other"
    git(tree, "worktree", "add", "-q", "-b", "second", str(other))
    git(other, "commit", "-q", "--allow-empty", "-m", "two")
    assert build.checked_out(other) == git(other, "rev-parse", "HEAD")
    assert build.checked_out(other) != build.checked_out(tree)


@pytest.mark.parametrize("head", ["", "ref: refs/heads/none", "ref: ../../etc/passwd", "no hash"])
def test_what_is_no_commit_is_not_told(tmp_path: Path, head: str) -> None:
    assert build.checked_out(tmp_path) == ""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text(head)
    assert build.checked_out(tmp_path) == ""


@pytest.mark.parametrize(
    ("written", "said"), [(f"{'3f' * 20}\n", "3f" * 20), ("\n", ""), ("x", "")]
)
def test_an_image_tells_what_it_was_built_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, said: str
) -> None:
    """A package that pip installed from a wheel knows no commit; the Dockerfile writes it."""
    (dockerfile,) = DEPLOY.glob("*.Dockerfile")
    (name,) = re.findall(r"/opscope-\*\.dist-info\)/(\w+)", dockerfile.read_text())
    (tmp_path / name).write_text(written)
    (tmp_path / "direct_url.json").write_text('{"archive_info": {}, "url": "file:///a.whl"}')
    monkeypatch.setattr(metadata, "distribution", lambda _: metadata.Distribution.at(tmp_path))
    build.revision.cache_clear()
    assert build.revision() == said
    build.revision.cache_clear()


def test_this_agent_tells_its_own() -> None:
    assert build.revision() == "" or build._HASH.fullmatch(build.revision())
    assert build.python_version()[0].isdigit()
