"""`fork` and `wait`: tasks on the library's threads, with the state of the forking thread."""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Callable
from types import TracebackType
from typing import Any, Generic, ParamSpec, TypeVar

from opscope._native import ffi, lib
from opscope.errors import TaskLostError, check
from opscope.record import closing as closing
from opscope.record.guard import swap_stacks

P = ParamSpec("P")
R = TypeVar("R")

_LOOK_S = 0.01


class Future(Generic[R]):
    """The future result of a task. Only `fork` creates one."""

    __slots__ = (
        "__weakref__",
        "_ended",
        "_error",
        "_future",
        "_handle",
        "_is_done",
        "_result",
        "_run",
    )

    def __init__(self, run: Callable[[], R]) -> None:
        self._run: Callable[[], R] | None = run
        self._result: R
        self._error: BaseException | None = None
        self._is_done = False
        self._ended = allocate_lock()  # held until the task has ended
        self._ended.acquire()
        self._handle: Any = ffi.new_handle(self)
        _running.add(self)
        out = ffi.new("opscope_future **")
        status = lib.opscope_fork(_entry, self._handle, out)
        if status != lib.OPSCOPE_OK:
            self._end(None)
            check(status, "cannot fork a task")
        self._future = ffi.gc(out[0], lib.opscope_future_release)

    def done(self) -> bool:
        """Whether the task has ended."""
        return self._is_done

    def wait(self) -> R:
        """The task's result, once it has ended; raises its exception.

        Runs a task here that has not begun. Ctrl-C ends the wait, and the task if it runs here.
        Raises TaskLostError in a forked child, for an unfinished task of its parent.
        """
        if not self._is_done:
            status = lib.opscope_future_run(self._future)
            if status == lib.OPSCOPE_ERR_LOST:
                raise TaskLostError("the task belongs to the process this one was forked from")
            # Python's lock and not opscope_wait, since signals interrupt it.
            while not self.done() and not lib.opscope_future_done(self._future):
                # From the interpreter's end on, a thread of the pool does not run what it takes.
                limit_s = _LOOK_S if lib.opscope_py_is_closed else -1
                if self._ended.acquire(timeout=limit_s):
                    self._ended.release()
            if not self.done():
                raise TaskLostError("the interpreter is shutting down and starts no more tasks")
        if self._error is not None:
            try:
                raise self._error
            finally:
                del self  # breaks a cycle: the error's traceback has this frame
        return self._result

    def _end(self, error: BaseException | None) -> None:
        if self._is_done:
            return
        self._run = None
        self._error = error
        self._is_done = True
        self._handle = None  # breaks a cycle: the handle refers to the future
        _running.discard(self)
        self._ended.release()


_entry = ffi.addressof(lib, "opscope_py_task_outside")

# Tasks that C holds a handle to, until they have ended.
_running: set[Future[Any]] = set()


def _interrupted(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    """Ends the task with a Ctrl-C that arrived just outside of it."""
    assert traceback is not None
    future: Future[Any] = ffi.from_handle(traceback.tb_frame.f_locals["arg"])
    future._end(error)


@ffi.def_extern(name="opscope_py_task", error=-13, onerror=_interrupted)  # type: ignore[untyped-decorator]
def _task(arg: Any) -> int:
    future: Future[Any] = ffi.from_handle(arg)
    stacks = swap_stacks({})
    try:
        assert future._run is not None
        future._result = future._run()
        future._end(None)
    except BaseException as error:
        # Without this frame, and without a local name that a traceback would keep alive.
        future._end(error.with_traceback(error.__traceback__ and error.__traceback__.tb_next))
    finally:
        swap_stacks(stacks)
        del future
    return 0


def fork(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Future[R]:
    """Run `function(*args, **kwargs)` as a task on another thread.

    The task gets this thread's current labels, local callbacks and recording switch.

    >>> wait(fork(pow, 2, 10))
    1024

    Tasks may fork tasks and wait for them to any depth. At the end of the program, unfinished tasks
    are abandoned, like daemon threads.
    """
    return Future(lambda: function(*args, **kwargs))


def wait(future: Future[R]) -> R:
    """`future.wait()`, under PyTorch's name."""
    try:
        return future.wait()
    finally:
        del future  # breaks a cycle, as in `Future.wait`
