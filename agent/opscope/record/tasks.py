"""``fork`` and ``wait``: tasks on the library's pool of threads, within the state of their forker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

from opscope._native import ffi, lib
from opscope.errors import OpscopeError, TaskLostError, check

P = ParamSpec("P")
R = TypeVar("R")


class Future(Generic[R]):
    """What a task will return. Made by :func:`fork` only."""

    __slots__ = ("_error", "_future", "_handle", "_result", "_run")

    def __init__(self, run: Callable[[], R]) -> None:
        self._run: Callable[[], R] | None = run
        self._result: R
        self._error: BaseException | None = None
        self._handle = ffi.new_handle(self)
        _running.add(self)
        out = ffi.new("opscope_future **")
        status = lib.opscope_fork(lib.opscope_py_task, self._handle, out)
        if status != lib.OPSCOPE_OK:
            _running.discard(self)
            check(status, "cannot fork a task")
        self._future = ffi.gc(out[0], lib.opscope_future_release)

    def done(self) -> bool:
        """Whether the task has ended."""
        return bool(lib.opscope_future_done(self._future))

    def wait(self) -> R:
        """What the task returned, once it has ended; raises what it raised.

        A task nobody has begun is run here. TaskLostError in a forked child, for a task of its
        parent's that had not ended.
        """
        result = ffi.new("int *")
        status = lib.opscope_wait(self._future, result)
        if status == lib.OPSCOPE_ERR_LOST:
            raise TaskLostError("the task belongs to the process this one was forked from")
        check(status, "cannot wait for a task", OpscopeError)
        if self._error is not None:
            raise self._error
        return self._result


# What C holds a handle to; removed by the task itself.
_running: set[Future[Any]] = set()


@ffi.def_extern(name="opscope_py_task", error=-13)  # type: ignore[untyped-decorator]
def _task(arg: Any) -> int:
    future: Future[Any] = ffi.from_handle(arg)
    run, future._run = future._run, None
    try:
        assert run is not None
        future._result = run()
    except BaseException as error:
        future._error = error
    finally:
        _running.discard(future)
    return 0


def fork(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Future[R]:
    """Run ``function(*args, **kwargs)`` as a task on another thread, with the labels, the local
    callbacks and the recording switch this thread has now."""
    return Future(lambda: function(*args, **kwargs))


def wait(future: Future[R]) -> R:
    """``future.wait()``, under PyTorch's name."""
    return future.wait()
