"""Life cycle of observation in this process: begin, attach bridges to imported frameworks, end.

No error leaves this module: the process continues unobserved, with the reason in its status and in
the ledger. bridges/ define the ranges of operators (see opscope/bridges/__init__.py), record/
counts them, and policy.py decides which processes to observe.

All of this runs during the program's `import numpy`, so rarely used modules are imported in place.
"""

import _thread
import atexit
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from opscope import bridges, stamps
from opscope.attachment import policy
from opscope.attachment.program import (
    identify,
    launch_notes,
    resource_notes,
    service_name,
    service_version,
)
from opscope.config import Config, load
from opscope.errors import BridgeError, ConfigError, RecorderError
from opscope.record import recorder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from opscope.attachment.site.sitecustomize import ImportHook
    from opscope.attachment.status import AttachStatus

ATTACHED = "attached"

_MULTIPROCESSING = "multiprocessing.process"
_CHILDREN = "opscope.record.children"
_EXTRA_FILES = "opscope.record.extra_files"
_EXTENSIONS = "opscope.bridges.extension_modules"
_CORE = "opscope.tensor"


class _Session:
    """The state, one for the process. The holder of `lock` owns it."""

    def __init__(self) -> None:
        self.lock = _thread.RLock()
        self.code = "idle"
        self.text = ""
        self.config: Config | None = None
        self.bridges: dict[str, str] = {}
        self.hook: ImportHook | None = None
        self.passed_over: Sequence[str] = ()


_session = _Session()


def _renew_lock() -> None:
    _session.lock = _thread.RLock()


# The thread that held it may not exist in a forked child.
os.register_at_fork(after_in_child=_renew_lock)


def attach() -> None:
    """Begins unless running, attaches to imported frameworks, and waits for the others."""
    with _guarded():
        if _session.code == ATTACHED:
            return
        _begin(asked=True)
        if _session.code != ATTACHED:
            return
        from opscope.attachment.site.sitecustomize import ImportHook

        awaited: list[str] = []
        if _MULTIPROCESSING in sys.modules:
            _follow_children()
        else:
            awaited.append(_MULTIPROCESSING)
        for name in (*bridges.modules(), _CORE):
            awaited += _attach_bridge(name) if _is_whole(name) else [name]
        awaited += _attach_guests()
        awaited += [name for name in stamps.FORMATS if not _is_whole(name)]
        awaited += _attach_extensions()
        _follow_stamps()
        if awaited:
            _session.hook = ImportHook(awaited, arriving, arrived)
            _session.hook.install()


def arriving(name: str) -> None:
    """A framework, or a late module of one, is about to run in this thread.

    Work that does not need the framework is done now: NumPy's BLAS starts threads that spin for a
    while, and later work competes with them for CPU time.
    """
    with _guarded():
        if _session.code == "idle":
            _begin(asked=False)
        if _session.code == ATTACHED and name == _framework(name) and _wants_bridge(name):
            # Attaching, which comes later, reports a bridge's error.
            with suppress(Exception, SystemExit):
                bridge = bridges.configured(name, _session.config)
                if hasattr(bridge, "arriving"):
                    bridge.arriving()
                for guest, host in bridges.GUESTS.items():
                    if name == host and _wants_bridge(guest):
                        bridges.configured(guest, _session.config)


def arrived(name: str) -> Sequence[str]:
    """That module has run. Returns the names of modules to wait for next."""
    with _guarded():
        if name == _MULTIPROCESSING:
            _follow_children()
        elif _session.code == ATTACHED:
            _follow_stamps(name)
            return [*_attach_bridge(name), *_attach_guests(name), *_attach_extensions()]
    return ()


def tell_passed_over(places: Sequence[str]) -> None:
    """Records the directories of other opscopes, which have left the process to this one."""
    _session.passed_over = places


def detach() -> None:
    """Ends observation; frameworks imported later stay unobserved."""
    with _guarded():
        if _session.hook is not None:
            _session.hook.remove()
            _session.hook = None
        if _is_whole(_CHILDREN):
            sys.modules[_CHILDREN].leave_behind(_for_child)
        for framework, outcome in _session.bridges.items():
            if outcome == ATTACHED:
                bridges.take_off(framework)
        _session.bridges.clear()
        if _EXTENSIONS in sys.modules:
            sys.modules[_EXTENSIONS].detach_listed()
        stamps.leave()
        if _EXTRA_FILES in sys.modules:
            sys.modules[_EXTRA_FILES].set_producer(())
        if _session.code == ATTACHED:
            _close()
        _session.code, _session.text = "detached", ""


def status() -> "AttachStatus":
    """The state of observation in this process."""
    from opscope.attachment.status import AttachStatus

    with _session.lock:
        code, text, segment = _session.code, _session.text, ""
        if code == ATTACHED:
            recorded = recorder.status()
            segment = recorded.path
            if not recorded.running:
                code, text = "recorder", "no segment could be created; `opscope ps` says why"
        return AttachStatus(
            attached=code == ATTACHED,
            code=code,
            text=text,
            segment=segment,
            bridges=dict(_session.bridges),
        )


def _follow_stamps(arrived: str = "") -> None:
    """Stamps what the packages write that are imported by now, the one that arrived included."""
    formats = _session.config.stamp if _session.config is not None else ()
    try:
        wanted = [name for name in stamps.FORMATS if name in formats]
        stamps.follow(name for name in wanted if name == arrived or _is_whole(name))
    except (Exception, SystemExit) as error:
        _write_ledger("stamp", repr(error))


def _follow_children() -> None:
    """Attaches in processes that multiprocessing spawns: these do not run sitecustomize, and may
    not run the caller."""
    from opscope.record import children

    children.take_along(_for_child)


def _for_child() -> tuple[Callable[[], None], tuple[()]]:
    return attach, ()


@contextmanager
def _guarded() -> Iterator[None]:
    """Holds the lock and catches opscope's errors; the program's KeyboardInterrupt passes."""
    with _session.lock:
        try:
            yield
        except Exception as error:
            _refuse("error", repr(error))


def _begin(*, asked: bool) -> None:
    _session.config = None
    if policy.other_user():
        # With rights other than the caller's, it does not even write a ledger.
        _session.code, _session.text = "other-user", "setuid or setgid"
        return
    try:
        config = _session.config = load()
        name, aliases = identify(sys.orig_argv, getattr(sys, "argv", ()))
        refusal = policy.refusal(config, name, aliases, asked=asked)
        if refusal is not None:
            _refuse(*refusal)
            return
        _start_recorder(config)
    except ConfigError as error:
        _refuse("config", str(error))
        return
    except RecorderError as error:
        _refuse("recorder", str(error))
        return
    _session.code, _session.text = ATTACHED, ""
    # Registered before other exit functions, so that it runs after them.
    atexit.unregister(_close)
    atexit.register(_close)
    _note("program", name)
    service = service_name(os.environ) or name
    # Before the service: once a reader sees that, it takes the process's attributes as final.
    for key, value in (resource_notes(os.environ) | launch_notes(os.environ)).items():
        _note(key, value)
    _note("service.name", service)
    version = service_version(os.environ)
    if version:
        _note("service.version", version)
    # After the segment and its service exist: `opscope set` writes the file first and then looks
    # for segments, so it misses no process.
    if os.path.lexists(f"{config.directory}/settings"):
        from opscope.attachment import settings_file

        settings_file.apply(config.directory, service, lambda text: _note("settings.refused", text))
    _note("python", "{}.{}.{}".format(*sys.version_info))
    _note("opscope", sys.modules["opscope"].__version__)
    if _session.passed_over:
        _note("opscope.passed_over", ", ".join(_session.passed_over))
    _attach_marks(config.marks)
    if config.producer:
        from opscope.record import extra_files

        known = {"service": service, "opscope_version": sys.modules["opscope"].__version__}
        extra_files.set_producer(config.producer, known)
    if config.debug:
        from opscope.attachment import ledger

        ledger.say(f"attached, {recorder.status().path}")


def _start_recorder(config: Config) -> None:
    try:
        recorder.start(
            config.directory,
            sampling=config.sampling,
            window_ms=config.window_ms,
            period_ms=config.period_ms,
            label_keys=config.label_keys,
            max_overhead_ppb=config.max_overhead_ppb,
            budget_is_default=config.budget_is_default,
        )
    except RecorderError:
        # The program may have started it. Checked only now, since that is rare.
        if not recorder.is_running():
            raise


def _close() -> None:
    with suppress(Exception):
        recorder.stop()


def _attach_bridge(module: str) -> Sequence[str]:
    if not _wants_bridge(module):
        return ()
    framework = _framework(module)
    known = _session.bridges.get(framework)
    if known is not None if module == framework else known != ATTACHED:
        return ()
    bridge, late = _try_bridge(framework)
    outcome = _session.bridges[framework]
    if outcome == ATTACHED and hasattr(bridge, "apply"):
        try:
            bridge.apply(_session.config)
        except (Exception, SystemExit) as error:
            # The ranges work; only the additional request failed.
            _write_ledger("bridge", f"{framework}: {error!r}")
    if outcome != known:
        _note(f"bridge.{framework}", outcome)
        _note(framework, str(getattr(sys.modules.get(framework), "__version__", "")))
    return late


def _try_bridge(framework: str) -> "tuple[Any, Sequence[str]]":
    """Attaches a bridge, once or once more; returns it and the modules to wait for."""
    late: list[str] = []
    bridge: Any = None
    try:
        bridge = bridges.configured(framework, _session.config)
        bridge.attach()
        late = [name for name in getattr(bridge, "LATE_MODULES", ()) if name not in sys.modules]
        for key, value in bridge.facts().items() if hasattr(bridge, "facts") else ():
            _note(key, value)
        outcome = ATTACHED
    except (Exception, SystemExit) as error:
        outcome = str(error) if isinstance(error, BridgeError) else repr(error)
        bridges.take_off(framework)
        _write_ledger("bridge", f"{framework}: {outcome}")
    _session.bridges[framework] = outcome
    return bridge, late


def _attach_guests(arrived: str = "") -> Sequence[str]:
    """Attaches the bridges that no import announces to what is imported by now."""
    late: list[str] = []
    for name, host in bridges.GUESTS.items():
        has_host = arrived == host or _is_whole(host)
        known = _session.bridges.get(name)
        if has_host and _wants_bridge(name) and known in (None, ATTACHED):
            late += _try_bridge(name)[1]
            if _session.bridges[name] != known:
                _note(f"bridge.{name}", _session.bridges[name])
    return late


def _attach_marks(kinds: Sequence[str]) -> None:
    """Attaches the bridges to what libraries mark, before a library makes its first mark."""
    for name in kinds:
        _try_bridge(name)
        _note(f"bridge.{name}", _session.bridges[name])


def _attach_extensions() -> Sequence[str]:
    """Makes the modules of the setting `extensions` visible; returns those to wait for."""
    listed = _session.config.extensions if _session.config is not None else ()
    if not listed:
        return ()
    from opscope.bridges import extension_modules

    try:
        return extension_modules.attach_listed(listed)
    except (Exception, SystemExit) as error:
        _write_ledger("extensions", str(error) if isinstance(error, BridgeError) else repr(error))
        return ()


def _is_whole(name: str) -> bool:
    # Another thread may be in the middle of the import; waiting for it could deadlock.
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return name in sys.modules and not getattr(spec, "_initializing", False)


def _framework(module: str) -> str:
    return module.partition(".")[0]


def _wants_bridge(module: str) -> bool:
    # The session waits for these without a bridge.
    config = _session.config
    return (
        module not in (_CORE, _MULTIPROCESSING)
        and module not in stamps.FORMATS
        and config is not None
        and module not in config.extensions
        and config.attaches_to(_framework(module))
    )


def _note(key: str, value: str) -> None:
    # A missing note is no reason to stop; the recorder counts what it could not keep.
    with suppress(RecorderError):
        recorder.note(key, value)


def _refuse(code: str, text: str) -> None:
    if _session.code != ATTACHED:
        _session.code, _session.text = code, text
    _write_ledger(code, text)


def _write_ledger(code: str, text: str) -> None:
    from opscope.attachment import ledger

    ledger.write(_session.config, code, text)
