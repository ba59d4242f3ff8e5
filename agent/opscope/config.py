"""Settings of the observed process and of the host agent: environment, then TOML, then defaults.

`OPSCOPE_<KEY>` in the environment wins over `<key>` in /etc/opscope/opscope.toml, which wins over
the default; an empty variable counts as absent. Some variables (`OPSCOPE_ATTACH`,
`OPSCOPE_API_USAGE_STDERR`) are not settings; other modules read them.

attachment/policy.py decides whether a process is observed. This module creates no directory. It
runs inside observed processes, so it imports only modules that they have anyway: a TOML parser only
if the file exists, and a plain namespace instead of a dataclass or named tuple, whose definition
takes a third of a millisecond or more.
"""

import os
import sys
from collections.abc import Mapping
from types import SimpleNamespace
from typing import NoReturn

from opscope.errors import ConfigError

CONFIG_PATH = "/etc/opscope/opscope.toml"
RUNTIME_DIRECTORY = "/dev/shm/opscope"
"""Prepared by root (agent/deploy/tmpfiles.conf) with mode 1777. There, a root agent keeps other
users from taking the names of users' directories."""
DEFAULT_LISTEN = ("127.0.0.1", 9464)
_PREFIX = "OPSCOPE_"
# <linux/stat.h>
_TYPE, _DIRECTORY, _STICKY_DIRECTORY = 0o170000, 0o040000, 0o041777
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
    "extensions",
    "marks",
    "torch_versions",
    "producer",
    "stamp",
    "include",
    "exclude",
    "listen",
    "interval_s",
    "max_series",
    "drop_ops",
    "drop_services",
    "top_ops",
    "series_idle_s",
    "ranks",
    "containers",
    "exporters",
    "state",
    "tls_cert",
    "tls_key",
    "basic_auth_file",
)
_OTHER_VARIABLES = ("OPSCOPE_ATTACH", "OPSCOPE_API_USAGE_STDERR", "OPSCOPE_DEBUG_INFO")
"""Some that are not settings, but have similar names."""
MOST_COUNT = 10_000_000
_MOST = 1e9
"""Largest number of seconds or milliseconds; clocks reject larger ones."""
ON = ("1", "true", "yes", "on")
OFF = ("0", "false", "no", "off")
_LABEL_KEYS_LIMIT = 2
MARKS = ("nvtx", "itt")
_TORCH_VERSIONS = ("verified", "tried")
_PRODUCER_FACTS = ("host", "user", "image", "git", "service", "opscope")
_STAMPED = ("torch.save", "torch.export", "safetensors", "onnx")


class Config(SimpleNamespace):
    """One process's validated settings; load() makes them, and they do not change."""

    directory: str
    """Directory of segments: absolute; the recorder creates it with mode 0700 if missing."""
    enabled: bool
    force: bool
    """Observe even a program of the built-in deny list (`OPSCOPE_ENABLED=force`)."""
    debug: bool
    sampling: float
    """Probability in [0, 1] of recording each range, if windows are off."""
    window_ms: float
    """Least length of a sampling window; 0: windows are off."""
    period_ms: float
    """Mean time from the start of one window to the next; above `window_ms`."""
    label_keys: tuple[str, ...]
    """Debug-info keys that become labels; at most two."""
    bridges: tuple[str, ...] | None
    """Frameworks to attach to; None: all that have a bridge."""
    extensions: tuple[str, ...]
    """Extension modules of any package whose compiled functions become operators
    (bridges/extension_modules.py)."""
    marks: tuple[str, ...]
    """Interfaces by which libraries mark ranges that become ranges: some of `nvtx`, `itt`
    (bridges/marks.py)."""
    torch_versions: str
    """`verified`: attach to each PyTorch that passes the bridge's checks; `tried`: only to releases
    that Opscope's tests have run with (bridges/torch/__init__.py)."""
    include: tuple[str, ...]
    """Globs of programs to observe; empty: all."""
    exclude: tuple[str, ...]
    """Globs of programs not to observe; wins over all other settings."""
    listen_host: str
    listen_port: int
    interval_s: float
    """Seconds without a request after which the host agent makes a pass of its own."""
    max_series: int
    drop_ops: tuple[str, ...]
    """Globs of operators that the host agent does not export."""
    drop_services: tuple[str, ...]
    """Globs of services whose operators the host agent does not export."""
    top_ops: int
    """Operators to export per service, the others as their sum; 0: all."""
    series_idle_s: float
    """If series run short: seconds since the end of a series' last process, before its place may be
    reused."""
    ranks: bool
    """Give each rank of a job its own series."""
    containers: bool
    """Give each container its own series."""
    producer: tuple[str, ...]
    """Facts about the saving process in every archive of opscope.tensor and every TorchScript
    archive: some of `host`, `user`, `image`, `git` (record/producer_facts.py)."""
    stamp: tuple[str, ...]
    """Formats whose files get the same facts and the files of the program's hook, which they would
    not have by themselves: some of `torch.save`, `torch.export`."""
    max_overhead_ppb: int
    """Share of the process's CPU time, times 1e9, above which it samples less; 0: no limit."""
    budget_is_default: bool
    """The limit is the default: it does not apply while every range is recorded, since the user has
    then asked for exact counts."""
    exporters: tuple[str, ...]
    """Names of the exporters that the host agent runs."""
    state: str | None
    """The file of the host agent's sums over restarts; "": agent.state in systemd's
    $STATE_DIRECTORY, or else beside the segments; None: nowhere."""
    tls_cert: str
    """The host agent's certificate chain, in PEM; "": no TLS."""
    tls_key: str
    basic_auth_file: str
    """Password file for the host agent's pages (server/access.py); "": no password."""

    def attaches_to(self, framework: str) -> bool:
        if framework in MARKS:
            return framework in self.marks
        return self.bridges is None or framework in self.bridges


class _Given:
    """The configured values, each with its name for error texts."""

    def __init__(self, environ: Mapping[str, str], path: str) -> None:
        self._values: dict[str, tuple[str, object]] = {}
        for key, value in _read_toml(path).items():
            if isinstance(value, dict) and key not in _KEYS:
                continue
            if key not in _KEYS:
                from opscope.nearest_name import did_you_mean

                known = f"known: {', '.join(_KEYS)}{did_you_mean(key, _KEYS)}"
                raise ConfigError(f"{path}: {key}: no such setting; {known}")
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

    def number(
        self, key: str, default: float, above: float, wanted: str, most: float = _MOST
    ) -> float:
        try:
            value = float(self.text(key, str(default)))
        except ValueError:
            self.refuse(key, wanted)
        if not above < value <= most:
            self.refuse(key, f"{wanted}, at most {most:g}" if value > most else wanted)
        return value


def mistyped(environ: Mapping[str, str] | None = None) -> list[str]:
    """Variables that are no setting but look like one, each with the setting's name."""
    from opscope.nearest_name import nearest

    found = []
    for name in sorted(os.environ if environ is None else environ):
        key = name.removeprefix(_PREFIX).lower()
        if name.startswith(_PREFIX) and key not in _KEYS and name not in _OTHER_VARIABLES:
            near = nearest(key, _KEYS, least_alike=0.75)
            found += [f"{name} (did you mean {_PREFIX}{near.upper()}?)"] if near else []
    return found


def load(environ: Mapping[str, str] | None = None, path: str = CONFIG_PATH) -> Config:
    """The settings of a process with this environment (default: `os.environ`).

    Raises ConfigError, with the variable or the file's key and the value, for any invalid value,
    even of an unused setting.
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
        budget_is_default=not given.has("max_overhead"),
        bridges=given.words("bridges", ()) if given.has("bridges") else None,
        extensions=given.words("extensions", ()),
        marks=_some_of(given, "marks", MARKS),
        torch_versions=_torch_versions(given),
        include=given.words("include", ()),
        exclude=given.words("exclude", ()),
        listen_host=listen_host,
        listen_port=listen_port,
        interval_s=given.number("interval_s", 30.0, 0.0, "must be seconds above 0"),
        max_series=_whole_number(given, "max_series", 2000, least=1),
        drop_ops=given.words("drop_ops", ()),
        drop_services=given.words("drop_services", ()),
        top_ops=_whole_number(given, "top_ops", 0, least=0),
        series_idle_s=given.number("series_idle_s", 120.0, 0.0, "must be seconds above 0"),
        ranks=given.switch("ranks", False),
        containers=given.switch("containers", False),
        producer=_some_of(given, "producer", _PRODUCER_FACTS),
        stamp=_some_of(given, "stamp", _STAMPED),
        exporters=given.words("exporters", ("prometheus",)),
        state=_state(given),
        basic_auth_file=given.text("basic_auth_file", ""),
        **_tls(given),
    )


def tables(path: str = CONFIG_PATH) -> dict[str, dict[str, object]]:
    """The file's tables: options of exporters (server/exporter.py), by exporter name.

    Raises ConfigError if the file cannot be read.
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
    except ModuleNotFoundError as error:
        needs = "needs the package tomli to be read by Python 3.10: pip install tomli"
        raise ConfigError(f"{path} {needs}") from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {error}") from error


def default_directories() -> tuple[str, ...]:
    """Possible directories of this user's segments, best first: within RUNTIME_DIRECTORY, if root
    has prepared it, and beside it."""
    name = f"opscope-{os.geteuid()}"
    beside = os.path.join(os.path.dirname(RUNTIME_DIRECTORY), name)
    if not is_runtime_directory(RUNTIME_DIRECTORY):
        return (beside,)
    return os.path.join(RUNTIME_DIRECTORY, name), beside


def is_runtime_directory(path: str) -> bool:
    """Whether root owns it, and users may create directories there and remove only their own."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return (found.st_mode, found.st_uid) == (_STICKY_DIRECTORY, 0)


def _default_directory() -> str:
    """The best one whose name no other user has taken."""
    wanted = default_directories()
    return next((path for path in wanted if not _is_others(path)), wanted[0])


def _is_others(path: str) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return found.st_uid != os.geteuid() or found.st_mode & _TYPE != _DIRECTORY


def _directory(given: _Given) -> str:
    directory = given.text("dir", "") or _default_directory()
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
    """A percentage like `0.5%`, above 0 and at most 100 %, as parts of 1e9; 0 for `off`; None
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
    default = f"{DEFAULT_LISTEN[0]}:{DEFAULT_LISTEN[1]}"
    host, colon, port = given.text("listen", default).rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        given.refuse("listen", "must be HOST:PORT")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _torch_versions(given: _Given) -> str:
    text = given.text("torch_versions", "verified")
    if text not in _TORCH_VERSIONS:
        given.refuse("torch_versions", f"must be one of {', '.join(_TORCH_VERSIONS)}")
    return text


def _some_of(given: _Given, key: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
    words = given.words(key, ())
    if not set(words) <= set(allowed):
        given.refuse(key, f"must be none or some of {', '.join(allowed)}")
    return words


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


def _whole_number(given: _Given, key: str, default: int, least: int) -> int:
    wanted = f"must be a whole number{' above 0' if least else ''}"
    value = given.number(key, default, least - 1, wanted, MOST_COUNT)
    if value != int(value):
        given.refuse(key, wanted)
    return int(value)
