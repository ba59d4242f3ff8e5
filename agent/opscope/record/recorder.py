"""The recorder from Python: start it, change its sampling, read its status."""

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from opscope._native import ffi, lib
from opscope.errors import RecorderError, check

if TYPE_CHECKING:
    from opscope.record.recorder_status import RecorderStatus


def _ns(milliseconds: float) -> int:
    return round(milliseconds * 1e6)


def _check_sampling(sampling: float, window_ms: float, period_ms: float) -> None:
    if window_ms:
        if not 0.0 < window_ms < period_ms:
            raise ValueError(
                f"a window of {window_ms} ms does not fit into a period of {period_ms} ms"
            )
    elif not 0.0 <= sampling <= 1.0:
        raise ValueError(f"sampling must be within [0, 1], not {sampling!r}")


_ALONE = {"unshare": 0, "setns": 1}
"""Functions of `os` since Python 3.12 that may need a process with one thread; by name, the index
of the flags among the arguments."""


def start(
    directory: str,
    *,
    sampling: float = 1.0,
    window_ms: float = 0.0,
    period_ms: float = 0.0,
    label_keys: Sequence[str] = ("model_id",),
    max_overhead_ppb: int = 0,
    budget_is_default: bool = False,
) -> None:
    """Record this process's ranges into a new segment in `directory` (an absolute path).

    `sampling` is the probability of each range. With `window_ms`, the recorder samples every range
    inside windows of that length (longer ones where that costs next to nothing), at random times,
    `period_ms` apart on average. `label_keys`: at most two debug-info keys that become labels.
    `max_overhead_ppb`: the share of the process's CPU time, times 1e9, above which the recorder
    samples less; 0: no limit. With `budget_is_default` there is no limit either while every range
    is recorded. Raises RecorderError with the reason.
    """
    _check_sampling(sampling, window_ms, period_ms)
    options = ffi.new("opscope_recorder_options *")
    keys = ",".join(label_keys).encode()
    kept = ffi.new("char[]", os.fsencode(directory)), ffi.new("char[]", keys)
    options.directory, options.label_keys = kept
    options.sampling_prob = sampling
    options.window_ns = _ns(window_ms)
    options.period_ns = _ns(period_ms)
    options.max_overhead_ppb = max_overhead_ppb
    options.budget_is_default = budget_is_default
    lib.opscope_py_follow_forks(sys.version_info >= (3, 12))
    for name, flags_at in _ALONE.items():
        if builtin := getattr(os, name, None):
            # It fails for a builtin with another layout, whose calls then fail beside our thread.
            lib.opscope_interpreter_call_alone(id(builtin), flags_at)
    check(lib.opscope_recorder_start(options), f"cannot record into {directory}", RecorderError)


def stop(discard: bool = False) -> None:
    """Stop recording. The segment stays for the host agent; `discard` removes it."""
    check(lib.opscope_recorder_stop(discard), "no recorder runs", RecorderError)


def set_sampling(sampling: float, *, window_ms: float = 0.0, period_ms: float = 0.0) -> None:
    """Change the sampling of the running recorder; the arguments are those of `start`."""
    _check_sampling(sampling, window_ms, period_ms)
    status = lib.opscope_recorder_set_sampling(sampling, _ns(window_ms), _ns(period_ms))
    check(status, "no recorder runs", RecorderError)


def note(key: str, value: str) -> None:
    """Write a fact about this process into its segment; a later value replaces an earlier one."""
    status = lib.opscope_recorder_note(key.encode(), value.encode(errors="replace"))
    check(status, f"cannot note {key}", RecorderError)


def _read_status() -> Any:
    out = ffi.new("opscope_recorder_status *")
    lib.opscope_recorder_read_status(out)
    return out


def is_running() -> bool:
    """Whether a recorder runs in this process."""
    return bool(_read_status().running)


def status() -> "RecorderStatus":
    """The recorder's status."""
    from opscope.record.recorder_status import RecorderStatus

    out = _read_status()
    return RecorderStatus(
        running=out.running,
        in_window=out.in_window,
        dropped_count=out.dropped_count,
        folded_count=out.folded_count,
        window_count=out.window_count,
        record_cost_s=out.record_cost_ps * 1e-12,
        path=ffi.string(out.path).decode(errors="replace"),
    )
