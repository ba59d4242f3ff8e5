"""Files that this process adds to every model archive that it saves.

They are the record of the producer, where the setting `producer` asks for it, and what the
program's hook gives. native/include/opscope/extra_files.h says which archives.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import TracebackType
from typing import Any

from opscope._native import ffi, lib
from opscope.errors import OpscopeError, check
from opscope.record import closing as closing
from opscope.record import interrupts

Hook = Callable[[], Mapping[str, bytes | str]]

PRODUCER_FILE = "producer_info.json"

_hook: Hook | None = None
_producer_facts: Collection[str] = ()
_producer_known: Mapping[str, str] = {}
_has_warned = False


def _raised(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    """Logs the first exception of a hook. C counts them all."""
    global _has_warned
    if interrupts.pass_on(error, traceback) or _has_warned:
        return
    _has_warned = True
    import logging

    logging.getLogger("opscope").warning(
        "no extra files could be added to an archive, which is saved without them", exc_info=error
    )


@ffi.def_extern(name="opscope_py_extra_files", error=-13, onerror=_raised)  # type: ignore[untyped-decorator]
def _add_files(files: Any, user: Any) -> int:
    _add(files, _producer_file())
    _add(files, _given_files())
    return 0


def _producer_file() -> dict[str, bytes]:
    if not _producer_facts:
        return {}
    import json

    from opscope.record import producer_facts

    found = producer_facts.select(_producer_facts, _producer_known)
    return {PRODUCER_FILE: json.dumps(found).encode()}


def _given_files() -> dict[str, bytes]:
    """All of the hook's files are converted before the first is used: all of them, or none."""
    return {
        str(name): content.encode() if isinstance(content, str) else bytes(memoryview(content))
        for name, content in (_hook().items() if _hook is not None else ())
    }


def _add(files: Any, contents: Mapping[str, bytes]) -> None:
    for name, content in contents.items():
        if "\0" in name:
            raise OpscopeError(f"cannot add {name!r} to the archive: a name without NUL")
        status = lib.opscope_extra_files_add(files, name.encode(), content, len(content))
        check(status, f"cannot add {name!r} to the archive", OpscopeError)


def set_export_extra_files_hook(hook: Hook | None) -> None:
    """Call `hook()` for every archive that this process saves; None removes the hook.

    >>> set_export_extra_files_hook(lambda: {"job.txt": "nightly-17"})
    >>> set_export_extra_files_hook(None)

    The hook returns contents by name, which archives keep below `extra/`. A name is a path of at
    most 255 bytes, without `.`, `..` and empty parts. A file that the program passes to a save
    itself takes precedence. A hook that raises spoils no save: its files are left out, the first
    exception is logged (to the logger "opscope"), and all are counted
    (`export_extra_files_errors`).
    """
    global _hook
    if hook is not None and not callable(hook):
        raise TypeError(f"a hook must be callable or None, not {hook!r}")
    _hook = hook
    _connect()


def set_producer(facts: Collection[str], known: Mapping[str, str] | None = None) -> None:
    """Add `producer_info.json` with these facts (record/producer_facts.py) to every archive.

    `known`: those that the caller knows, by their keys.
    """
    global _producer_facts, _producer_known
    _producer_facts, _producer_known = frozenset(facts), dict(known or {})
    _connect()


def hook_files() -> dict[str, bytes]:
    """The files for one archive of a format that C does not write."""
    files = lib.opscope_extra_files_collect()
    try:
        found = {}
        for index in range(lib.opscope_extra_files_count(files)):
            file = lib.opscope_extra_files_at(files, index)
            name = ffi.string(file.name).decode(errors="replace")
            found[name] = bytes(ffi.buffer(ffi.cast("char *", file.data), file.bytes))
        return found
    finally:
        lib.opscope_extra_files_free(files)


def export_extra_files_errors() -> int:
    """How often the hook has raised in this process."""
    return int(lib.opscope_extra_files_error_count())


def _connect() -> None:
    is_wanted = _hook is not None or _producer_facts
    entry = ffi.addressof(lib, "opscope_py_extra_files_outside") if is_wanted else ffi.NULL
    status = lib.opscope_set_export_extra_files_hook(entry, ffi.NULL)
    check(status, "cannot set the extra-files hook", OpscopeError)
