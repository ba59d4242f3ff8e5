"""Settings of the observed process and of the host agent: environment, then TOML, then defaults.

`OPSCOPE_<KEY>` in the environment wins over `<key>` in /etc/opscope/opscope.toml, which wins over
the default; an empty variable counts as absent. Variables of another meaning (`OPSCOPE_ATTACH`,
`OPSCOPE_API_USAGE_STDERR`) are not settings and stand elsewhere.

What this file does not do: decide whether a process is observed (attachment/policy.py), or make any
directory. It runs inside observed processes, so it imports nothing that they do not have anyway:
a TOML parser only where the file exists, and a plain namespace in place of a dataclass or a named
tuple, which would take a third of a millisecond and more to define.
"""

import os
import sys
from collections.abc import Mapping
from types import SimpleNamespace
from typing import NoReturn

from opscope.errors import ConfigError

CONFIG_PATH = "/etc/opscope/opscope.toml"

_PREFIX = "OPSCOPE_"
_KEYS = (
    "dir",
    "enabled",
    "debug",
    "sampling",
    "window_ms",
    "period_ms",
    "max_overhead",
    "labels",
    "bridges",
    "producer",
    "include",
    "exclude",
    "listen",
    "interval_s",
    "max_series",
    "exporters",
    "state",
    "tls_cert",
    "tls_key",
    "basic_auth_file",
)
ON = ("1", "true", "yes", "on")
OFF = ("0", "false", "no", "off")
_LABEL_KEYS_LIMIT = 2
_PRODUCER_FACTS = ("host", "user", "image", "git")


class Config(SimpleNamespace):
    """One process's settings, checked; made by load() and not changed afterwards."""

    directory: str
    """Where segments go: absolute; the recorder makes it with mode 0700 where missing."""
    enabled: bool
    force: bool
    """Observe even a program of the built-in deny list (`OPSCOPE_ENABLED=force`)."""
    debug: bool
    sampling: float
    """Probability within [0, 1] with which each range is recorded, where windows are off."""
    window_ms: float
    """Length of a sampling window; 0: windows are off."""
    period_ms: float
    """Mean time from the start of one window to the next; above `window_ms`."""
    label_keys: tuple[str, ...]
    """Debug-info keys that become labels; at most two."""
    bridges: tuple[str, ...]
    """Frameworks to attach to."""
    include: tuple[str, ...]
    """Globs of programs to observe; none: all."""
    exclude: tuple[str, ...]
    """Globs of programs to leave alone; wins over everything."""
    listen_host: str
    listen_port: int
    interval_s: float
    """The host agent makes a pass of its own where nobody asked for one for so many seconds."""
    max_series: int
    producer: tuple[str, ...]
    """What every TorchScript archive is to say of the process that saves it: some of ``host``,
    ``user``, ``image``, ``git`` (bridges/torch_producer.py)."""
    max_overhead_ppb: int
    """Share of the process's CPU time, times 1e9, above which the recorder samples less; 0: any."""
    spares_all: bool
    """Nobody asked for that limit: it does not hold where every range is recorded, as that is a
    wish for exactness."""
    exporters: tuple[str, ...]
    """Names of the exporters that the host agent runs."""
    state: str | None
    """The file of the host agent's sums over restarts; "": agent.state where segments are; None:
    nowhere."""
    tls_cert: str
    """The host agent's certificate chain, in PEM; "": no TLS."""
    tls_key: str
    basic_auth_file: str
    """Who may read the host agent's pages (agent/access.py); "": everybody who reaches them."""


class _Given:
    """The values that were given, each with the name to call it by in an error."""

    def __init__(self, environ: Mapping[str, str], path: str) -> None:
        self._values: dict[str, tuple[str, object]] = {}
        for key, value in _read_toml(path).items():
            if isinstance(value, dict) and key not in _KEYS:
                continue
            if key not in _KEYS:
                raise ConfigError(f"{path}: {key}: no such setting; known: {', '.join(_KEYS)}")
            self._values[key] = (f"{path}: {key}", value)
        for key in _KEYS:
            name = _PREFIX + key.upper()
            text = environ.get(name, "").strip()
            if text:
                self._values[key] = (name, text)

    def refuse(self, key: str, wanted: str) -> NoReturn:
        name, value = self._values[key]
        raise ConfigError(f"{name}={value!r}: {wanted}")

    def has(self, key: str) -> bool:
        return key in self._values

    def text(self, key: str, default: str) -> str:
        value = self._values.get(key, ("", default))[1]
        if isinstance(value, bool):
            return "1" if value else "0"
        if isinstance(value, (str, int, float)):
            return str(value)
        self.refuse(key, "must be a single value")

    def words(self, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
        value = self._values.get(key, ("", default))[1]
        if isinstance(value, str):
            value = [] if value == "none" else value.split(",")
        if not isinstance(value, (list, tuple)) or not all(isinstance(w, str) for w in value):
            self.refuse(key, "must be a list of words")
        return tuple(dict.fromkeys(word.strip() for word in value if word.strip()))

    def switch(self, key: str, default: bool) -> bool:
        text = self.text(key, "1" if default else "0").lower()
        if text not in ON + OFF:
            self.refuse(key, "must be 1 or 0")
        return text in ON

    def number(self, key: str, default: float, above: float, wanted: str) -> float:
        try:
            value = float(self.text(key, str(default)))
        except ValueError:
            self.refuse(key, wanted)
        if not above < value < float("inf"):
            self.refuse(key, wanted)
        return value


def load(environ: Mapping[str, str] | None = None, path: str = CONFIG_PATH) -> Config:
    """The settings of a process with this environment (default: `os.environ`).

    Raises ConfigError, which names the variable or the file's key and the value, where one cannot
    be used; a bad value that nothing would look at is refused too.
    """
    given = _Given(os.environ if environ is None else environ, path)
    force = given.text("enabled", "1").lower() == "force"
    sampling, window_ms, period_ms = _sampling(given)
    listen_host, listen_port = _listen(given)
    return Config(
        directory=_directory(given),
        enabled=force or given.switch("enabled", True),
        force=force,
        debug=given.switch("debug", False),
        sampling=sampling,
        window_ms=window_ms,
        period_ms=period_ms,
        label_keys=_label_keys(given),
        max_overhead_ppb=_max_overhead(given),
        spares_all=not given.has("max_overhead"),
        bridges=given.words("bridges", ("numpy", "torch")),
        include=given.words("include", ()),
        exclude=given.words("exclude", ()),
        listen_host=listen_host,
        listen_port=listen_port,
        interval_s=given.number("interval_s", 30.0, 0.0, "must be seconds above 0"),
        max_series=_max_series(given),
        producer=_producer(given),
        exporters=given.words("exporters", ("prometheus",)),
        state=_state(given),
        basic_auth_file=given.text("basic_auth_file", ""),
        **_tls(given),
    )


def tables(path: str = CONFIG_PATH) -> dict[str, dict[str, object]]:
    """The file's tables: options of exporters (agent/exporter.py), each by its exporter's name.

    Raises ConfigError where the file cannot be read.
    """
    return {name: table for name, table in _read_toml(path).items() if isinstance(table, dict)}


def _read_toml(path: str) -> dict[str, object]:
    try:
        with open(path, "rb") as file:
            if sys.version_info >= (3, 11):
                import tomllib
            else:
                import tomli as tomllib
            return dict(tomllib.load(file))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, ImportError) as error:
        raise ConfigError(f"{path}: {error}") from error


def _directory(given: _Given) -> str:
    directory = given.text("dir", f"/dev/shm/opscope-{os.geteuid()}")
    if not os.path.isabs(directory):
        given.refuse("dir", "must be an absolute path")
    return directory


def _sampling(given: _Given) -> tuple[float, float, float]:
    window_ms = given.number("window_ms", 2.0, 0.0, "must be milliseconds above 0")
    period_ms = given.number("period_ms", 250.0, 0.0, "must be milliseconds above 0")
    text = given.text("sampling", "windows").lower()
    if text == "windows":
        if period_ms <= window_ms:
            given.refuse(
                "period_ms" if given.has("period_ms") else "window_ms",
                f"the period ({period_ms} ms) must be longer than the window ({window_ms} ms)",
            )
        return 1.0, window_ms, period_ms
    wanted = "must be a probability from 0 to 1, or windows"
    try:
        probability = float(text)
    except ValueError:
        given.refuse("sampling", wanted)
    if not 0.0 <= probability <= 1.0:
        given.refuse("sampling", wanted)
    return probability, 0.0, period_ms


def overhead_ppb(text: str) -> int | None:
    """A percentage like ``0.5%``, above 0 and at most 100 %, as parts of 1e9; 0 for ``off``; None
    for anything else."""
    if text.lower() in OFF:
        return 0
    number, percent, rest = text.partition("%")
    try:
        ppb = float(number) * 1e7 if percent and not rest.strip() else 0.0
    except ValueError:
        return None
    return round(ppb) if 1 <= ppb <= 1e9 else None


def _max_overhead(given: _Given) -> int:
    ppb = overhead_ppb(given.text("max_overhead", "0.5%"))
    if ppb is None:
        given.refuse("max_overhead", "must be a percentage like 0.5%, or off")
    return ppb


def _label_keys(given: _Given) -> tuple[str, ...]:
    keys = given.words("labels", ("model_id",))
    if len(keys) > _LABEL_KEYS_LIMIT:
        given.refuse("labels", f"at most {_LABEL_KEYS_LIMIT} labels")
    return keys


def _listen(given: _Given) -> tuple[str, int]:
    host, colon, port = given.text("listen", "127.0.0.1:9464").rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        given.refuse("listen", "must be HOST:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _producer(given: _Given) -> tuple[str, ...]:
    facts = given.words("producer", ())
    if not set(facts) <= set(_PRODUCER_FACTS):
        given.refuse("producer", f"must be none or some of {', '.join(_PRODUCER_FACTS)}")
    return facts


def _state(given: _Given) -> str | None:
    state = given.text("state", "")
    if state and state != "none" and not os.path.isabs(state):
        given.refuse("state", "must be an absolute path, or none")
    return None if state == "none" else state


def _tls(given: _Given) -> dict[str, str]:
    files = {key: given.text(key, "") for key in ("tls_cert", "tls_key")}
    for key, other in (("tls_cert", "tls_key"), ("tls_key", "tls_cert")):
        if files[key] and not files[other]:
            given.refuse(key, f"needs {other} too")
    return files


def _max_series(given: _Given) -> int:
    value = given.number("max_series", 2000.0, 0.0, "must be a whole number above 0")
    if value != int(value):
        given.refuse("max_series", "must be a whole number above 0")
    return int(value)
