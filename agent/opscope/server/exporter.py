"""The interface of exporters: modules behind the entry point `opscope.exporters`.

The module has OPTIONS and `create(options)`, which gets a value for each option. `create` returns a
PageExporter (asked for a page, as Prometheus does) or a PushExporter (given snapshots
periodically). An exporter gets only snapshots; third parties can add one without changes here.

Each option is automatically a flag, an environment variable and a TOML key: the option `file` of
the exporter `jsonl` is the flag `--jsonl-file` of `opscope agent`, the variable OPSCOPE_JSONL_FILE,
and `file` in the table `[jsonl]` of the configuration file; the first one set wins. push.py
schedules snapshots; opscope/metrics.py defines the metrics.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from opscope import config
from opscope.errors import AgentError, ConfigError
from opscope.nearest_name import did_you_mean

if TYPE_CHECKING:
    from opscope.host.snapshot import Snapshot

GROUP = "opscope.exporters"

Value = str | int | float | bool
Options = Mapping[str, Any]
"""Values by option name; each has the type of the option's default."""


@dataclass(frozen=True)
class Option:
    """One option. Its values have the type of `default`."""

    name: str
    default: Value
    help: str
    choices: tuple[Value, ...] = ()
    """All valid values; empty: any."""
    least: float | None = None
    """The smallest valid number."""
    most: float = 1e9
    """The largest."""

    def parse(self, given: object) -> Value:
        """Converts a value from text or TOML. Raises ValueError with the valid values."""
        value = self._of_type(given)
        if self.choices and value not in self.choices:
            raise ValueError(f"must be {_either(self.choices)}")
        if self.least is not None and isinstance(value, (int, float)) and not value >= self.least:
            raise ValueError(f"must be {self.least:g} or more")
        if isinstance(value, (int, float)) and not -self.most <= value <= self.most:
            raise ValueError(f"must be at most {self.most:g}")
        return value

    def _of_type(self, given: object) -> Value:
        wanted = type(self.default)
        if wanted is bool:
            if isinstance(given, bool):
                return given
            if str(given).lower() not in config.ON + config.OFF:
                raise ValueError("must be 1 or 0")
            return str(given).lower() in config.ON
        if isinstance(given, bool) or not isinstance(given, (str, int, float)):
            raise ValueError("must be a single value")
        if wanted is str:
            return str(given)
        try:
            return int(str(given)) if wanted is int else float(given)
        except ValueError:
            raise ValueError(f"must be a {'whole ' * (wanted is int)}number") from None


def _either(choices: Sequence[Value]) -> str:
    *most, last = (f"{one:g}" if isinstance(one, float) else str(one) for one in choices)
    return f"{', '.join(most)} or {last}" if most else last


@runtime_checkable
class PageExporter(Protocol):
    def page(self, snapshot: Snapshot, accept: str) -> tuple[Iterable[bytes], str]:
        """The page in pieces of any size, and its content type, for a client that sent this Accept
        header ("" if none).

        The pieces are generated while the page is sent. Called from several threads.
        """
        ...

    def close(self) -> None: ...


@runtime_checkable
class PushExporter(Protocol):
    interval_s: float
    """Seconds between snapshots."""

    def export(self, snapshot: Snapshot) -> None:
        """Sends the snapshot; called by one thread, which belongs to this exporter.

        It may take long: the next snapshot includes everything missed meanwhile. Exceptions are
        counted and reported, and do not affect other exporters. Raises ExportRefused if the data
        is lost, so that it must not be sent again.
        """

    def close(self) -> None:
        """Makes a running export in the other thread end soon; no other follows."""


class ExporterModule(Protocol):
    OPTIONS: Sequence[Option]

    def create(self, options: Options) -> PageExporter | PushExporter: ...


def installed() -> list[str]:
    """Names of the installed exporters, sorted."""
    return sorted(metadata.entry_points(group=GROUP).names)


def module(name: str) -> ExporterModule:
    """The installed exporter's module. Raises AgentError if it is missing or fails to import."""
    found = metadata.entry_points(group=GROUP)
    if name not in found.names:
        known = f"{', '.join(installed())}{did_you_mean(name, installed())}"
        raise AgentError(f"no exporter {name!r}; installed: {known}")
    try:
        loaded: ExporterModule = found[name].load()
    except Exception as error:
        raise AgentError(f"exporter {name} cannot be imported: {error}") from error
    return loaded


def load(
    name: str,
    given: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
    path: str = config.CONFIG_PATH,
) -> PageExporter | PushExporter:
    """The installed exporter of that name, with the given options; other options come from the
    environment and the configuration file.

    Raises AgentError for an unknown exporter or option, ConfigError for an invalid value; both name
    the setting.
    """
    loaded = module(name)
    return loaded.create(_chosen(name, loaded, given or {}, environ, path))


def _chosen(
    name: str,
    loaded: ExporterModule,
    given: Mapping[str, object],
    environ: Mapping[str, str] | None,
    path: str,
) -> dict[str, Value]:
    environ = os.environ if environ is None else environ
    table = config.tables(path).get(name, {})
    options = {option.name: option for option in loaded.OPTIONS}
    known = ", ".join(options) or "none"
    for key in given:
        if key not in options:
            raise AgentError(f"exporter {name}: no option {key!r}; known: {known}")
    for key in table:
        if key not in options:
            raise ConfigError(f"{path}: [{name}] {key}: no such option; known: {known}")
    chosen = {}
    for key, option in options.items():
        for where, value in (
            (f"--{name}-{key}".replace("_", "-"), given.get(key)),
            (variable(name, key), environ.get(variable(name, key), "").strip() or None),
            (f"{path}: [{name}] {key}", table.get(key)),
        ):
            if value is not None:
                try:
                    chosen[key] = option.parse(value)
                except ValueError as error:
                    raise ConfigError(f"{where}={value!r}: {error}") from None
                break
        else:
            chosen[key] = option.default
    return chosen


def variable(name: str, option: str) -> str:
    """The environment variable of an exporter's option."""
    return f"OPSCOPE_{name}_{option}".upper()


def check_tables(path: str = config.CONFIG_PATH) -> None:
    """Raises ConfigError for a table of the configuration file that belongs to no exporter."""
    for name in config.tables(path):
        if name not in installed():
            raise ConfigError(
                f"{path}: [{name}]: no such exporter; known: {', '.join(installed())}"
            )


class ExportRefused(AgentError):  # noqa: N818 - the receiver's word
    """The receiver permanently rejects this data."""
