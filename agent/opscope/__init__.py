"""Opscope: always-on, fleet-wide operator observability for Python numerics.

This package imports only the standard library and its own C module. The README says what it is for;
`native/README.md` describes the C layers.

PYTEST_DONT_REWRITE: pytest would rewrite the assertions of every package of a distribution with a
plugin, and warn of each that a program has already imported, as an observed one has this.
"""

import _thread
import os

from opscope.errors import (
    AgentError,
    BridgeError,
    CallbackError,
    ConfigError,
    FleetError,
    ModelFileError,
    OpscopeError,
    RecorderError,
    ScriptError,
    TaskLostError,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from opscope.attachment import attach, attach_status, detach
    from opscope.headers import get_include, get_library_dir
    from opscope.record.callbacks import (
        add_global_callback,
        add_thread_local_callback,
        callback_errors,
        clear_callbacks,
        disable_callback,
        enable_callback,
        has_callbacks,
        remove_callback,
    )
    from opscope.record.debug_info import child_environment, debug_info, get_debug_info, propagate
    from opscope.record.extra_files import (
        export_extra_files_errors,
        set_export_extra_files_hook,
    )
    from opscope.record.function import RecordFunction
    from opscope.record.ranges import record_function, recording
    from opscope.record.scope import RecordScope
    from opscope.record.tasks import Future, fork, wait
    from opscope.record.usage import (
        log_api_usage_metadata,
        log_api_usage_once,
        set_api_usage_handler,
        set_api_usage_metadata_handler,
    )
    from opscope.server.serve import serve
    from opscope.timeline.profiler import profile
    from opscope.timeline.schedule import schedule

__version__ = "0.1.0"

__all__ = [
    "AgentError",
    "BridgeError",
    "CallbackError",
    "ConfigError",
    "FleetError",
    "Future",
    "ModelFileError",
    "OpscopeError",
    "RecordFunction",
    "RecordScope",
    "RecorderError",
    "ScriptError",
    "TaskLostError",
    "add_global_callback",
    "add_thread_local_callback",
    "attach",
    "attach_status",
    "callback_errors",
    "child_environment",
    "clear_callbacks",
    "debug_info",
    "detach",
    "disable_callback",
    "enable_callback",
    "export_extra_files_errors",
    "fork",
    "get_debug_info",
    "get_include",
    "get_library_dir",
    "has_callbacks",
    "log_api_usage_metadata",
    "log_api_usage_once",
    "profile",
    "propagate",
    "record_function",
    "recording",
    "remove_callback",
    "schedule",
    "serve",
    "set_api_usage_handler",
    "set_api_usage_metadata_handler",
    "set_export_extra_files_hook",
    "wait",
]

# Modules of the lazily imported names. An observed program imports this package while it imports
# its framework, and needs none of them.
_HOMES = {
    "opscope.server.serve": "serve",
    "opscope.attachment": "attach attach_status detach",
    "opscope.headers": "get_include get_library_dir",
    "opscope.record.callbacks": "add_global_callback add_thread_local_callback callback_errors "
    "clear_callbacks disable_callback enable_callback has_callbacks remove_callback",
    "opscope.record.debug_info": "child_environment debug_info get_debug_info propagate",
    "opscope.record.extra_files": "export_extra_files_errors set_export_extra_files_hook",
    "opscope.record.function": "RecordFunction",
    "opscope.record.ranges": "record_function recording",
    "opscope.record.scope": "RecordScope",
    "opscope.record.tasks": "Future fork wait",
    "opscope.record.usage": "log_api_usage_metadata log_api_usage_once set_api_usage_handler "
    "set_api_usage_metadata_handler",
    "opscope.timeline.profiler": "profile",
    "opscope.timeline.schedule": "schedule",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

# The first use of each in the process is logged as API usage: "opscope.profile".
_LOGGED = frozenset(
    "add_global_callback add_thread_local_callback debug_info fork profile propagate "
    "record_function recording serve".split()
)


def __getattr__(name: str) -> object:
    module = _HOME_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'opscope' has no attribute {name!r}")
    import importlib

    with _loading:
        try:
            value = getattr(importlib.import_module(module), name)
        except ModuleNotFoundError as error:
            extras = importlib.import_module("opscope.extras")
            what = extras.line(f"opscope.{name}", "agent")
            raise ModuleNotFoundError(what, name=error.name) from error
        globals()[name] = value
    if name in _LOGGED:
        from opscope.record.usage import log_api_usage_once

        log_api_usage_once(f"opscope.{name}")
    return value


# A child forked in the middle of an import keeps an incomplete module for ever, so a fork waits for
# imports. The wait is limited: the import may itself wait for a lock that another library holds for
# the fork.
_loading = _thread.RLock()
_LOADING_LIMIT_S = 2.0


def _hold_loading() -> None:
    _loading.acquire(timeout=_LOADING_LIMIT_S)


def _let_go_of_loading() -> None:
    try:
        _loading.release()
    except RuntimeError:
        pass  # not held: the wait timed out


os.register_at_fork(
    before=_hold_loading, after_in_parent=_let_go_of_loading, after_in_child=_let_go_of_loading
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
