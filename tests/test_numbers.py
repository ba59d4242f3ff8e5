"""Options and settings reject NaN and infinity."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from opscope import config
from opscope.cli._group import main
from opscope.errors import ConfigError
from opscope.server import exporter
from opscope.server.exporter import Option

NEEDED = {"serve-model": ("name=archive",)}
"""Arguments without which a command refuses every option."""
BAD = ["nan", "-nan", "inf", "-inf", "1e999", "-1", "1e300"]


def options(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The way to each option that takes a number with a fraction."""
    context = click.Context(command)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from options(found, (*words, name))
    for one in command.get_params(context):
        if isinstance(one.type, click.types.FloatParamType) and isinstance(one, click.Option):
            yield (*words, one.opts[0])


OPTIONS = sorted(set(options(main)))


def test_these_are_options_that_take_such_numbers() -> None:
    assert {("trace", "--seconds"), ("record", "--seconds"), ("top", "--interval")} <= {*OPTIONS}


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize("words", OPTIONS, ids=" ".join)
def test_an_option_refuses_what_is_no_number_for_it(words: tuple[str, ...], value: str) -> None:
    others = NEEDED.get(words[0], ())
    done = CliRunner().invoke(main, [*words[:-1], f"{words[-1]}={value}", *others])
    assert done.exit_code == 2, done.output
    assert f"Invalid value for '{words[-1]}'" in done.output


@pytest.mark.parametrize("value", ["0", "-1", str(1 << 31), "nan"])
@pytest.mark.parametrize("words", [["top"], ["record"], ["set", "--show"]], ids=" ".join)
def test_a_pid_is_one(words: list[str], value: str) -> None:
    done = CliRunner().invoke(main, [*words, f"--pid={value}"])
    assert done.exit_code == 2
    assert "Invalid value for '--pid'" in done.output


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize(
    "key",
    "sampling window_ms period_ms max_overhead interval_s max_series top_ops series_idle_s".split(),
)
def test_a_setting_refuses_what_is_no_number_for_it(tmp_path: Path, key: str, value: str) -> None:
    path = tmp_path / "opscope.toml"
    with pytest.raises(ConfigError, match=f"OPSCOPE_{key.upper()}='{value}'"):
        config.load({f"OPSCOPE_{key.upper()}": value}, str(path))
    path.write_text(f'{key} = "{value}"\n')
    with pytest.raises(ConfigError, match=key):
        config.load({}, str(path))


def number_options() -> Iterator[object]:
    for name in exporter.installed():
        for option in exporter.module(name).OPTIONS:
            if isinstance(option.default, float):
                yield pytest.param(option, id=f"{name}.{option.name}")


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize("option", [*number_options()])
def test_an_exporters_option_refuses_what_is_no_number(option: Option, value: str) -> None:
    for given in (value, float(value)):
        with pytest.raises(ValueError, match="must be"):
            option.parse(given)


def test_an_option_of_another_make_has_bounds_too() -> None:
    with pytest.raises(ValueError, match="at most 1e"):
        Option("any", 1.0, "").parse(math.nan)
