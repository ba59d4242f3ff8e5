"""Settings: their sources, and errors that name a bad one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from opscope import config
from opscope.errors import ConfigError


def write_toml(directory: Path, text: str) -> str:
    path = directory / "opscope.toml"
    path.write_text(text)
    return str(path)


def test_without_settings_the_defaults_hold(tmp_path: Path) -> None:
    loaded = config.load({}, str(tmp_path / "none.toml"))
    assert loaded == config.Config(
        directory=f"/dev/shm/opscope-{os.geteuid()}",
        enabled=True,
        force=False,
        debug=False,
        sampling=1.0,
        window_ms=2.0,
        period_ms=250.0,
        label_keys=("model_id",),
        bridges=None,
        extensions=(),
        include=(),
        exclude=(),
        listen_host="127.0.0.1",
        listen_port=9464,
        interval_s=30.0,
        max_series=2000,
        drop_ops=(),
        drop_services=(),
        top_ops=0,
        series_idle_s=120.0,
        ranks=False,
        containers=False,
        torch_versions="verified",
        producer=(),
        stamp=(),
        marks=(),
        max_overhead_ppb=5_000_000,
        budget_is_default=True,
        exporters=("prometheus",),
        state="",
        tls_cert="",
        tls_key="",
        basic_auth_file="",
    )


def test_the_environment_wins_over_the_file_and_the_file_over_the_default(tmp_path: Path) -> None:
    path = write_toml(tmp_path, 'sampling = 0.5\nlabels = ["a", "b"]\nenabled = false\n')
    loaded = config.load({"OPSCOPE_SAMPLING": "0.25"}, path)
    assert (loaded.sampling, loaded.label_keys, loaded.enabled) == (0.25, ("a", "b"), False)
    assert loaded.listen_port == 9464


def test_an_empty_variable_counts_as_absent(tmp_path: Path) -> None:
    path = write_toml(tmp_path, "sampling = 0.5\n")
    assert config.load({"OPSCOPE_SAMPLING": " "}, path).sampling == 0.5


def test_windows_bring_their_length_and_period(tmp_path: Path) -> None:
    path = str(tmp_path / "none.toml")
    loaded = config.load({"OPSCOPE_SAMPLING": "windows", "OPSCOPE_WINDOW_MS": "5"}, path)
    assert (loaded.sampling, loaded.window_ms, loaded.period_ms) == (1.0, 5.0, 250.0)


def test_without_windows_their_length_is_zero(tmp_path: Path) -> None:
    path = str(tmp_path / "none.toml")
    environ = {"OPSCOPE_SAMPLING": "1", "OPSCOPE_WINDOW_MS": "5"}
    assert config.load(environ, path).window_ms == 0.0


def test_force_enables_over_a_file_that_disables(tmp_path: Path) -> None:
    loaded = config.load({"OPSCOPE_ENABLED": "force"}, write_toml(tmp_path, "enabled = false"))
    assert (loaded.enabled, loaded.force) == (True, True)


def test_lists_are_split_by_commas_and_none_is_the_empty_one(tmp_path: Path) -> None:
    environ = {"OPSCOPE_INCLUDE": " a*, b ,,a*", "OPSCOPE_LABELS": "none"}
    loaded = config.load(environ, str(tmp_path / "none.toml"))
    assert (loaded.include, loaded.label_keys) == (("a*", "b"), ())


def test_an_address_of_version_6_is_taken(tmp_path: Path) -> None:
    loaded = config.load({"OPSCOPE_LISTEN": "[::1]:0"}, str(tmp_path / "none.toml"))
    assert (loaded.listen_host, loaded.listen_port) == ("::1", 0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OPSCOPE_SAMPLING", "1.5"),
        ("OPSCOPE_SAMPLING", "-0.1"),
        ("OPSCOPE_SAMPLING", "nan"),
        ("OPSCOPE_SAMPLING", "often"),
        ("OPSCOPE_WINDOW_MS", "0"),
        ("OPSCOPE_PERIOD_MS", "inf"),
        ("OPSCOPE_ENABLED", "maybe"),
        ("OPSCOPE_DEBUG", "2"),
        ("OPSCOPE_LABELS", "a,b,c"),
        ("OPSCOPE_DIR", "relative/directory"),
        ("OPSCOPE_LISTEN", "9464"),
        ("OPSCOPE_LISTEN", ":9464"),
        ("OPSCOPE_LISTEN", "127.0.0.1:65536"),
        ("OPSCOPE_LISTEN", "127.0.0.1:http"),
        ("OPSCOPE_INTERVAL_S", "0"),
        ("OPSCOPE_MAX_SERIES", "1.5"),
    ],
)
def test_a_bad_variable_is_named_with_its_value(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config.load({name: value}, str(tmp_path / "none.toml"))
    assert f"{name}={value!r}" in str(caught.value)


@pytest.mark.parametrize("name", ["OPSCOPE_WINDOW_MS", "OPSCOPE_PERIOD_MS"])
def test_a_window_as_long_as_its_period_is_refused(tmp_path: Path, name: str) -> None:
    environ = {"OPSCOPE_SAMPLING": "windows", name: "250" if "WINDOW" in name else "2"}
    with pytest.raises(ConfigError, match=f"{name}=.*longer than the window"):
        config.load(environ, str(tmp_path / "none.toml"))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("sampling = 2", "sampling=2: must be a probability"),
        ("sampling = [1]", "must be a single value"),
        ("labels = 1", "labels=1: must be a list"),
        ("labels = [1]", "must be a list"),
        ("colour = 'red'", "colour: no such setting"),
        ("smapling = 1", "did you mean sampling?"),
        ("sampling = = 1", "opscope.toml"),
    ],
)
def test_a_bad_file_is_named_with_the_key(tmp_path: Path, text: str, named: str) -> None:
    path = write_toml(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        config.load({}, path)
    assert named in str(caught.value)
    assert path in str(caught.value)


def test_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=str(tmp_path)):
        config.load({}, str(tmp_path))


def test_without_a_file_no_parser_of_files_is_imported(tmp_path: Path) -> None:
    program = (
        "import sys; from opscope import config; "
        f"config.load({{}}, {str(tmp_path / 'none.toml')!r}); "
        "print([m for m in ('tomllib', 'tomli', 'dataclasses') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n"


def test_versions_of_torch_are_those_verified_or_those_tried(tmp_path: Path) -> None:
    path = write_toml(tmp_path, 'torch_versions = "tried"\n')
    assert config.load({}, path).torch_versions == "tried"
    assert config.load({"OPSCOPE_TORCH_VERSIONS": "verified"}, path).torch_versions == "verified"
    with pytest.raises(ConfigError, match=r"OPSCOPE_TORCH_VERSIONS='2.13'.*verified, tried"):
        config.load({"OPSCOPE_TORCH_VERSIONS": "2.13"}, path)


def test_what_archives_say_is_named_by_known_words(tmp_path: Path) -> None:
    path = write_toml(tmp_path, 'producer = ["host", "git"]\n')
    assert config.load({}, path).producer == ("host", "git")
    assert config.load({"OPSCOPE_PRODUCER": "image, user"}, path).producer == ("image", "user")
    assert config.load({"OPSCOPE_PRODUCER": "none"}, path).producer == ()
    assert config.load({"OPSCOPE_STAMP": "torch.save"}, path).stamp == ("torch.save",)
    with pytest.raises(
        ConfigError, match=r"OPSCOPE_PRODUCER='host,name'.*host, user, image, git, service, opscope"
    ):
        config.load({"OPSCOPE_PRODUCER": "host,name"}, path)


def test_variables_with_a_mistyped_name_are_found_and_others_left_alone() -> None:
    wrong = ("OPSCOPE_SAMPLNG", "OPSCOPE_DIRECTORY", "OPSCOPE_MAX_OVERHEADS", "OPSCOPE_INTERVAL")
    others = ["OPSCOPE_ATTACH", "OPSCOPE_API_USAGE_STDERR", "OPSCOPE_DEBUG_INFO", "OPSCOPE_IMAGE"]
    others += ["OPSCOPE_FLEET_URL", "OPSCOPE_JSONL_FILE", "OPSCOPE_GIT_REVISION", "SAMPLNG"]
    others += ["OPSCOPE_TORCH_VALUES", "OPSCOPE_TORCH_LABELS", "OPSCOPE_SAMPLING", "OPSCOPE_STATE"]
    found = config.mistyped(dict.fromkeys((*wrong, *others), "1"))
    assert found == [
        "OPSCOPE_DIRECTORY (did you mean OPSCOPE_DIR?)",
        "OPSCOPE_INTERVAL (did you mean OPSCOPE_INTERVAL_S?)",
        "OPSCOPE_MAX_OVERHEADS (did you mean OPSCOPE_MAX_OVERHEAD?)",
        "OPSCOPE_SAMPLNG (did you mean OPSCOPE_SAMPLING?)",
    ]
