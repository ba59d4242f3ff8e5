"""A change of running recorders' settings: parse it from words, print it, merge two changes.

A change is a list of words `key=value`, as in `opscope set` and in a settings file
(attachment/settings_file.py); here they become the numbers of a control block
(`opscope_control` in opscope/segment.h). control/control_block.py applies a change to a running
process. Observed processes import this module only if there is a settings file.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from opscope._native import ffi, lib
from opscope.config import OFF, ON, overhead_ppb
from opscope.errors import ConfigError

ENABLED: int = lib.OPSCOPE_CONTROL_ENABLED
SAMPLING: int = lib.OPSCOPE_CONTROL_SAMPLING
WINDOWS: int = lib.OPSCOPE_CONTROL_WINDOWS
MAX_OVERHEAD: int = lib.OPSCOPE_CONTROL_MAX_OVERHEAD
LABELS: int = lib.OPSCOPE_CONTROL_LABELS
ALL: int = lib.OPSCOPE_CONTROL_ALL
ALONE: int = lib.OPSCOPE_CONTROL_ALONE

KEYS = ("sampling", "windows", "max_overhead", "labels", "enabled")
# The bits that a word may set, by its key.
BITS = {
    "sampling": SAMPLING | WINDOWS,
    "windows": WINDOWS,
    "max_overhead": MAX_OVERHEAD,
    "labels": LABELS,
    "enabled": ENABLED,
}

_LABEL_KEYS_LIMIT = 2
_LABEL_KEY_BYTES = 63
_PERIOD_LIMIT_NS = 10**15
_PERIOD_PER_WINDOW_LIMIT = 10**9
_UNITS_NS = {"us": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9}


class SettingsChange(NamedTuple):
    """A change of settings; fields whose bit is not in `given` have no meaning."""

    given: int = 0
    enabled: bool = True
    sampling_prob_ppt: int = 0
    window_ns: int = 0
    """0: windows as the process is configured."""
    period_ns: int = 0
    max_overhead_ppb: int = 0
    """0: no limit."""
    label_keys: str = ""
    """Separated by commas."""

    def over(self, earlier: SettingsChange) -> SettingsChange:
        """The union of both changes; where they conflict, this one wins."""
        if self.given & ALONE:
            return self
        given = earlier.given
        if self.given & (SAMPLING | WINDOWS):
            given &= ~(SAMPLING | WINDOWS)
        mine = {name: getattr(self, name) for name in _fields(self.given)}
        return earlier._replace(given=given | self.given, **mine)

    @property
    def is_possible(self) -> bool:
        """Whether all numbers are in the range that a controller writes."""
        return (
            not self.given & ~(ALL | ALONE)
            and self.sampling_prob_ppt <= 10**12
            and max(self.window_ns, self.period_ns) <= _PERIOD_LIMIT_NS
            and self.max_overhead_ppb <= 10**9
            and self.label_keys.isprintable()
            and "\ufffd" not in self.label_keys
        )

    def words(self) -> list[str]:
        """The change as the words that an operator would write."""
        found = []
        if self.given & SAMPLING:
            found.append(f"sampling={self.sampling_prob_ppt / 1e12:.12g}")
        if self.given & WINDOWS and not self.window_ns:
            found.append("sampling=windows")
        elif self.given & WINDOWS:
            found.append(f"windows={_time_text(self.window_ns)}/{_time_text(self.period_ns)}")
        if self.given & MAX_OVERHEAD:
            share = f"{self.max_overhead_ppb / 1e7:.9g}%" if self.max_overhead_ppb else "off"
            found.append(f"max_overhead={share}")
        if self.given & LABELS:
            found.append(f"labels={self.label_keys}")
        if self.given & ENABLED:
            found.append(f"enabled={'true' if self.enabled else 'false'}")
        return found


def _fields(given: int) -> Iterable[str]:
    if given & ENABLED:
        yield "enabled"
    if given & (SAMPLING | WINDOWS):
        yield from ("sampling_prob_ppt", "window_ns", "period_ns")
    if given & MAX_OVERHEAD:
        yield "max_overhead_ppb"
    if given & LABELS:
        yield "label_keys"


def parse(words: Iterable[str]) -> SettingsChange:
    """The change that these words `key=value` describe.

    Raises ConfigError with the expected form.
    """
    values: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        key = key.strip().replace("-", "_")
        if not equals or key not in KEYS:
            from opscope.nearest_name import did_you_mean

            what = f"{key}: no such setting" if equals else f"{word!r} is not KEY=VALUE"
            raise ConfigError(f"{what}; known: {', '.join(KEYS)}{did_you_mean(key, KEYS)}")
        if key in values:
            raise ConfigError(f"{key} is given twice: {values[key]!r} and {value!r}")
        values[key] = value.strip()
    change = SettingsChange()
    for key, value in values.items():
        if key != "windows":
            change = _READERS[key](value).over(change)
    if "windows" in values:
        if values.get("sampling", "windows").lower() != "windows":
            raise ConfigError(
                f"sampling={values['sampling']} and windows={values['windows']} cannot be "
                "combined: give a probability or windows"
            )
        change = _windows(values["windows"]).over(change)
    return change


def _sampling(text: str) -> SettingsChange:
    if text.lower() == "windows":
        return SettingsChange(given=WINDOWS)
    wanted = "must be a probability from 0 to 1, or windows"
    try:
        probability = float(text)
    except ValueError:
        raise ConfigError(f"sampling={text!r}: {wanted}") from None
    if not (probability == 0.0 or 1e-12 <= probability <= 1.0):
        least = " (above 0, at least 1e-12)" if 0.0 < probability < 1e-12 else ""
        raise ConfigError(f"sampling={text!r}: {wanted}{least}")
    return SettingsChange(given=SAMPLING, sampling_prob_ppt=round(probability * 1e12))


def _windows(text: str) -> SettingsChange:
    window, slash, period = text.partition("/")
    if not slash:
        raise ConfigError(
            f"windows={text!r}: must be LENGTH/PERIOD with units, like windows=2ms/250ms"
        )
    window_ns, period_ns = _time_ns(text, window), _time_ns(text, period)
    if window_ns <= 0 or period_ns <= window_ns:
        raise ConfigError(f"windows={text!r}: the period must be longer than the window, both > 0")
    if period_ns > _PERIOD_LIMIT_NS or period_ns // window_ns >= _PERIOD_PER_WINDOW_LIMIT:
        raise ConfigError(
            f"windows={text!r}: the period may be at most 11 days, and 1e9 windows long"
        )
    return SettingsChange(given=WINDOWS, window_ns=window_ns, period_ns=period_ns)


def _time_ns(text: str, part: str) -> int:
    ns = time_ns(part)
    if ns is None:
        raise ConfigError(
            f"windows={text!r}: {part.strip()!r} is not a time; units: {', '.join(_UNITS_NS)}, "
            "like windows=2ms/250ms"
        )
    return ns


def time_ns(text: str) -> int | None:
    """Nanoseconds of a number with a unit, like 2ms; -1 if negative, None if it is no time."""
    text = text.strip()
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz")
    try:
        ns = float(number) * _UNITS_NS[text[len(number) :]]
        return round(min(ns, 1e18)) if ns >= 0 else -1
    except (KeyError, ValueError):
        return None


def _time_text(ns: int) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6)):
        if ns >= size:
            return f"{ns / size:.15g}{unit}"
    return f"{ns / 1e3:.15g}us"


def _max_overhead(text: str) -> SettingsChange:
    ppb = overhead_ppb(text)
    if ppb is None:
        raise ConfigError(f"max_overhead={text!r}: must be a percentage like 0.5%, or off")
    return SettingsChange(given=MAX_OVERHEAD, max_overhead_ppb=ppb)


def _labels(text: str) -> SettingsChange:
    keys = [] if text in ("", "none") else [key.strip() for key in text.split(",")]
    if len(keys) > _LABEL_KEYS_LIMIT:
        raise ConfigError(f"labels={text!r}: at most {_LABEL_KEYS_LIMIT} keys, comma-separated")
    for key in keys:
        if not key or len(key.encode()) > _LABEL_KEY_BYTES or not key.isprintable() or " " in key:
            raise ConfigError(
                f"labels={text!r}: {key!r} is not a valid key: 1 to {_LABEL_KEY_BYTES} "
                "bytes, no blanks; labels=none exports no labels"
            )
    if len(set(keys)) < len(keys):
        raise ConfigError(f"labels={text!r}: {keys[0]!r} is given twice")
    return SettingsChange(given=LABELS, label_keys=",".join(keys))


def _enabled(text: str) -> SettingsChange:
    if text.lower() not in ON + OFF:
        raise ConfigError(f"enabled={text!r}: must be true or false")
    return SettingsChange(given=ENABLED, enabled=text.lower() in ON)


_READERS = {
    "sampling": _sampling,
    "max_overhead": _max_overhead,
    "labels": _labels,
    "enabled": _enabled,
}


def inherit(change: SettingsChange) -> None:
    """Applies it on top of this process's configuration. Raises ConfigError if impossible."""
    block = ffi.new(
        "opscope_control *", change._asdict() | {"label_keys": change.label_keys.encode()}
    )
    refused = ffi.new("uint64_t *")
    status = lib.opscope_recorder_inherit(block, refused)
    if status != lib.OPSCOPE_OK:
        reason = ffi.string(lib.opscope_status_text(status)).decode()
        raise ConfigError(f"{' '.join(change.words())}: {reason}")
