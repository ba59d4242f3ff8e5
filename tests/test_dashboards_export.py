"""`opscope dashboards export` writes the files of dashboards/ and agent/deploy/."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from opscope.cli._group import main

ROOT = Path(__file__).parents[1]
FILES = {
    **{f"grafana/{one.name}": one for one in (ROOT / "dashboards" / "grafana").glob("*.json")},
    **{f"rules/{one.name}": one for one in (ROOT / "dashboards" / "rules").glob("*.yml")},
    "RUNBOOK.md": ROOT / "dashboards" / "RUNBOOK.md",
    "agent.service": ROOT / "agent" / "deploy" / "agent.service",
}


def written(directory: Path) -> dict[str, bytes]:
    return {
        str(one.relative_to(directory)): one.read_bytes()
        for one in directory.rglob("*")
        if one.is_file()
    }


def test_every_file_is_written_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "made" / "here"
    for _ in range(2):
        done = CliRunner().invoke(main, ["dashboards", "export", str(target)])
        assert done.exit_code == 0, done.output
        # The package has them as they were when it was built.
        assert written(target).keys() == FILES.keys()
        assert done.output.split() == sorted(str(target / name) for name in FILES)


def test_a_file_of_ones_own_is_replaced_only_where_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    own = tmp_path / "rules" / "alerts.yml"
    own.write_text("mine")
    words = ["dashboards", "export", str(tmp_path)]
    done = CliRunner().invoke(main, words)
    assert (done.exit_code, own.read_text()) == (1, "mine")
    assert "rules/alerts.yml; --force" in done.output
    assert written(tmp_path).keys() == {"rules/alerts.yml"}
    assert CliRunner().invoke(main, [*words, "--force"]).exit_code == 0
    assert written(tmp_path).keys() == FILES.keys()
    assert own.read_text() != "mine"


def test_links_to_the_runbook_are_absolute_by_configuration(tmp_path: Path) -> None:
    url = "https://wiki.example.com/opscope"
    words = ["dashboards", "export", str(tmp_path), "--runbook-url", url]
    assert CliRunner().invoke(main, words).exit_code == 0
    alerts = (tmp_path / "rules" / "alerts.yml").read_text()
    assert f"runbook_url: {url}#opscopestraggler\n" in alerts
    assert "RUNBOOK.md#" not in alerts


@pytest.mark.parametrize("url", ["wiki", "ftp://a/b", "https://a/b#c", "https://a/b\n", ""])
def test_an_address_that_is_none_is_refused(tmp_path: Path, url: str) -> None:
    words = ["dashboards", "export", str(tmp_path), "--runbook-url", url]
    assert CliRunner().invoke(main, words).exit_code == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["file", "file/below"])
def test_a_failure_to_create_the_directory_is_reported(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    done = CliRunner().invoke(main, ["dashboards", "export", str(tmp_path / name)])
    assert done.exit_code in (1, 2)
    assert str(tmp_path / "file") in done.output
