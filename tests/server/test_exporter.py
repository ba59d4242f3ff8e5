"""Options of exporters: typed, and automatically flags, variables and TOML keys."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from opscope.errors import AgentError, ConfigError
from opscope.server import exporter
from opscope.server.exporter import Option, load

OPTIONS = (
    Option("path", "", "a file"),
    Option("octaves", 2, "how fine", (1, 2, 4)),
    Option("interval_s", 10.0, "how often", least=0.5),
    Option("exemplars", False, "with exemplars"),
)
DEFAULTS = {"path": "", "octaves": 2, "interval_s": 10.0, "exemplars": False}


class EntryPoints:
    """The answer of `importlib.metadata.entry_points` if these modules are installed."""

    def __init__(self, modules: dict[str, Any]) -> None:
        self._modules = modules
        self.names = set(modules)

    def __getitem__(self, name: str) -> Any:
        def imported() -> Any:
            if isinstance(self._modules[name], Exception):
                raise self._modules[name]
            return self._modules[name]

        return SimpleNamespace(load=imported)


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An exporter `sample` with these options, and one that cannot be imported."""
    sample = SimpleNamespace(OPTIONS=OPTIONS, create=dict)
    found = EntryPoints({"sample": sample, "broken": ImportError("no module named there")})
    monkeypatch.setattr(metadata, "entry_points", lambda group: found)


def chosen(
    tmp_path: Path, given: Mapping[str, object], environ: dict[str, str], toml: str = ""
) -> Any:
    path = tmp_path / "opscope.toml"
    path.write_text(toml)
    return load("sample", given, environ, str(path))


def test_defaults_hold_where_nothing_is_given(tmp_path: Path) -> None:
    assert chosen(tmp_path, {}, {}) == DEFAULTS


def test_a_flag_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    toml = "[sample]\npath = 'file'\noctaves = 4\ninterval_s = 3\nexemplars = true\n"
    assert chosen(tmp_path, {}, {}, toml) == {
        "path": "file",
        "octaves": 4,
        "interval_s": 3.0,
        "exemplars": True,
    }
    environ = {"OPSCOPE_SAMPLE_PATH": "environ", "OPSCOPE_SAMPLE_OCTAVES": " "}
    found = chosen(tmp_path, {}, environ, toml)
    assert (found["path"], found["octaves"]) == ("environ", 4)
    assert chosen(tmp_path, {"path": "flag"}, environ, toml)["path"] == "flag"


def test_values_have_the_type_of_the_default(tmp_path: Path) -> None:
    given = {"octaves": "1", "interval_s": "2", "exemplars": "yes", "path": "5"}
    found = chosen(tmp_path, given, {})
    assert found == {"octaves": 1, "interval_s": 2.0, "exemplars": True, "path": "5"}
    assert [type(found[name]) for name in DEFAULTS] == [type(v) for v in DEFAULTS.values()]


@pytest.mark.parametrize(
    ("given", "environ", "toml", "said"),
    [
        ({"octaves": "3"}, {}, "", "--sample-octaves='3': must be 1, 2 or 4"),
        ({"interval_s": "0.1"}, {}, "", "--sample-interval-s='0.1': must be 0.5 or more"),
        ({"interval_s": "nan"}, {}, "", "--sample-interval-s='nan': must be 0.5 or more"),
        ({}, {"OPSCOPE_SAMPLE_OCTAVES": "x"}, "", "OPSCOPE_SAMPLE_OCTAVES='x': must be a whole"),
        ({}, {"OPSCOPE_SAMPLE_EXEMPLARS": "2"}, "", "OPSCOPE_SAMPLE_EXEMPLARS='2': must be 1 or 0"),
        ({}, {}, "[sample]\noctaves = [1]", "opscope.toml: [sample] octaves=[1]: must be a single"),
        ({}, {}, "[sample]\nwidth = 1", "[sample] width: no such option; known: path, octaves"),
    ],
)
def test_a_value_that_cannot_be_used_is_named(
    tmp_path: Path, given: dict[str, object], environ: dict[str, str], toml: str, said: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        chosen(tmp_path, given, environ, toml)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("nobody", {}, "no exporter 'nobody'; installed: broken, sample"),
        ("broken", {}, "exporter broken cannot be imported: no module named there"),
        ("sample", {"octave": 2}, "exporter sample: no option 'octave'; known: path, octaves"),
    ],
)
def test_an_unknown_exporter_is_reported_with_the_known_ones(
    name: str, options: dict[str, object], said: str
) -> None:
    with pytest.raises(AgentError) as caught:
        load(name, options, {})
    assert said in str(caught.value)


def test_a_table_of_no_exporter_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "opscope.toml"
    path.write_text("[sample]\n[samples]\n")
    with pytest.raises(ConfigError, match=r"\[samples\]: no such exporter; known: broken, sample"):
        exporter.check_tables(str(path))


def agent(*arguments: str) -> subprocess.CompletedProcess[str]:
    code = "from opscope.cli import main; main()"
    command: Sequence[str] = [sys.executable, "-c", code, "agent", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_options_are_flags_of_the_agent() -> None:
    assert "--prometheus-octaves" in agent("--help").stdout
    refused = agent("--listen", "127.0.0.1:0", "--prometheus-octaves", "3")
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert "--prometheus-octaves='3': must be 0.125, 0.25, 0.5, 1, 2 or 4" in refused.stderr
