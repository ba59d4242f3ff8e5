"""This process's being observed: begin, attach bridges as frameworks are imported, end.

Whatever goes wrong in here stays in here: the process goes on unobserved, with the reason in its
status and in the ledger. Not here: what an operator's range is (bridges/), where it is counted
(record/), who is to be observed (policy.py).

A bridge is a module `opscope.bridges.<framework>`. Its `attach()` raises BridgeError where it must
stand down; its `detach()` also undoes an `attach()` that got half way; after the import of each of
its `LATE_MODULES` it wants to be attached once more. Where it has an `arriving()`, that is called
when its framework's module is there but has not run; where it has an `apply(config)`, that is
called once it is attached.

All of this runs during the program's `import numpy`: what is seldom needed is imported in place.
"""

import _thread
import atexit
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module

from opscope.attachment import policy
from opscope.attachment.program import identify, service_name, service_version
from opscope.config import Config, load
from opscope.errors import BridgeError, ConfigError, RecorderError
from opscope.record import recorder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from opscope.attachment.site.sitecustomize import ImportHook
    from opscope.attachment.status import AttachStatus

ATTACHED = "attached"

# As torchrun sets them, and launchers that follow it.
_RANK_VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE")

_MULTIPROCESSING = "multiprocessing.process"
_CHILDREN = "opscope.record.children"


class _Session:
    """All that is kept. One a process; whoever holds `lock` owns it."""

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
    """Begins where nothing runs, then attaches what is imported and waits for what is not."""
    with _guarded():
        if _session.code == ATTACHED:
            return
        _begin(asked=True)
        if _session.code != ATTACHED:
            return
        from opscope.attachment.site.sitecustomize import FRAMEWORKS, ImportHook

        awaited: list[str] = []
        if _MULTIPROCESSING in sys.modules:
            _follow_children()
        else:
            awaited.append(_MULTIPROCESSING)
        for name in FRAMEWORKS:
            awaited += _attach_bridge(name) if _is_whole(name) else [name]
        if awaited:
            _session.hook = ImportHook(awaited, arriving, arrived)
            _session.hook.install()


def arriving(name: str) -> None:
    """A framework, or a late module of one, is about to run in this thread.

    All that needs no framework is done now: NumPy's BLAS starts threads that spin for a while, and
    whatever comes after has to share the processor with them.
    """
    with _guarded():
        if _session.code == "idle":
            _begin(asked=False)
        if _session.code == ATTACHED and _framework(name) in _wanted():
            # What is wrong with a bridge is told when it is to be attached.
            with suppress(Exception):
                bridge = _bridge(_framework(name))
                if name == _framework(name) and hasattr(bridge, "arriving"):
                    bridge.arriving()


def arrived(name: str) -> Sequence[str]:
    """That module has run. Returns the modules to be called for next."""
    with _guarded():
        if name == _MULTIPROCESSING:
            _follow_children()
        elif _session.code == ATTACHED:
            return _attach_bridge(name)
    return ()


def tell_passed_over(places: Sequence[str]) -> None:
    """Other opscopes are at these places, and have left the process to this one."""
    _session.passed_over = places


def detach() -> None:
    """Ends what runs; a framework imported later is left alone."""
    with _guarded():
        if _session.hook is not None:
            _session.hook.remove()
            _session.hook = None
        if _is_whole(_CHILDREN):
            sys.modules[_CHILDREN].leave_behind(_for_child)
        for framework, outcome in _session.bridges.items():
            if outcome == ATTACHED:
                _bridge(framework).detach()
        _session.bridges.clear()
        if _session.code == ATTACHED:
            _close()
        _session.code, _session.text = "detached", ""


def status() -> "AttachStatus":
    """How things stand in this process."""
    from opscope.attachment.status import AttachStatus

    with _session.lock:
        code, text, segment = _session.code, _session.text, ""
        if code == ATTACHED:
            recorded = recorder.status()
            segment = recorded.path
            if not recorded.running:
                code, text = "recorder", "no segment could be begun; `opscope ps` says why"
        return AttachStatus(
            attached=code == ATTACHED,
            code=code,
            text=text,
            segment=segment,
            bridges=dict(_session.bridges),
        )


def _follow_children() -> None:
    """Processes that multiprocessing spawns run neither sitecustomize nor, always, the caller."""
    from opscope.record import children

    children.take_along(_for_child)


def _for_child() -> tuple[Callable[[], None], tuple[()]]:
    return attach, ()


@contextmanager
def _guarded() -> Iterator[None]:
    """Holds the lock, and lets no error of opscope's out; the program's own Ctrl-C may go."""
    with _session.lock:
        try:
            yield
        except Exception as error:
            _refuse("error", repr(error))


def _begin(*, asked: bool) -> None:
    _session.config = None
    if policy.other_user():
        # With rights that are not the caller's, not even a ledger is written.
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
    # First among the exit functions of this moment, so that it runs last.
    atexit.unregister(_close)
    atexit.register(_close)
    _note("program", name)
    service = service_name(os.environ) or name
    _note("service.name", service)
    version = service_version(os.environ)
    if version:
        _note("service.version", version)
    # Now that the segment and its service are there: whoever sets something writes the file first
    # and looks for segments then, so that no process falls between.
    if os.path.lexists(f"{config.directory}/settings"):
        from opscope.attachment import settings_file

        settings_file.apply(config.directory, service, lambda text: _note("settings.refused", text))
    _note("python", "{}.{}.{}".format(*sys.version_info))
    _note("opscope", sys.modules["opscope"].__version__)
    if _session.passed_over:
        _note("opscope.passed_over", ", ".join(_session.passed_over))
    for variable in _RANK_VARIABLES:
        if os.environ.get(variable):
            _note(variable.lower(), os.environ[variable])
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
            spares_all=config.spares_all,
        )
    except RecorderError:
        # The program may have started it. Asked only now, as it hardly ever has.
        if not recorder.is_running():
            raise


def _close() -> None:
    with suppress(Exception):
        recorder.stop()


def _attach_bridge(module: str) -> Sequence[str]:
    framework = _framework(module)
    if framework not in _wanted():
        return ()
    known = _session.bridges.get(framework)
    if known is not None if module == framework else known != ATTACHED:
        return ()
    late: list[str] = []
    try:
        bridge = _bridge(framework)
        bridge.attach()
        late = [name for name in bridge.LATE_MODULES if name not in sys.modules]
        for key, value in bridge.facts().items():
            _note(key, value)
        outcome = ATTACHED
    except Exception as error:
        outcome = str(error) if isinstance(error, BridgeError) else repr(error)
        with suppress(Exception):
            _bridge(framework).detach()
        _write_ledger("bridge", f"{framework}: {outcome}")
    _session.bridges[framework] = outcome
    if outcome == ATTACHED and hasattr(_bridge(framework), "apply"):
        try:
            _bridge(framework).apply(_session.config)
        except Exception as error:
            # What it was asked for beside ranges is not had; the ranges are.
            _write_ledger("bridge", f"{framework}: {error!r}")
    _note(f"bridge.{framework}", outcome)
    _note(framework, str(getattr(sys.modules.get(framework), "__version__", "")))
    return late


def _is_whole(name: str) -> bool:
    # Another thread may be in the middle of importing it; waiting here could wait for ever.
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return name in sys.modules and not getattr(spec, "_initializing", False)


def _framework(module: str) -> str:
    return module.partition(".")[0]


def _wanted() -> tuple[str, ...]:
    return _session.config.bridges if _session.config is not None else ()


def _bridge(framework: str) -> "Any":
    return import_module(f"opscope.bridges.{framework}")


def _note(key: str, value: str) -> None:
    # A note more or less is no reason to stop; the recorder counts what it could not keep.
    with suppress(RecorderError):
        recorder.note(key, value)


def _refuse(code: str, text: str) -> None:
    if _session.code != ATTACHED:
        _session.code, _session.text = code, text
    _write_ledger(code, text)


def _write_ledger(code: str, text: str) -> None:
    from opscope.attachment import ledger

    ledger.write(_session.config, code, text)
