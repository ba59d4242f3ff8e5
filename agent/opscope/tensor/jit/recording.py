"""Record the operators that this thread calls as the nodes of a graph.

The record layer delivers the calls, with all arguments, through a thread-local callback, so other
programs pay nothing. An operator inside another one gets no node.
"""

from __future__ import annotations

import threading
import warnings
from dataclasses import dataclass, field
from typing import Any

from opscope._tensor import Tensor, functions, operators, set_read_listener
from opscope.record.callbacks import add_thread_local_callback, remove_callback
from opscope.record.function import RecordFunction
from opscope.record.scope import RecordScope
from opscope.tensor.autograd import is_grad_enabled
from opscope.tensor.jit import source_lines
from opscope.tensor.jit.graph_builder import GraphBuilder, TraceError
from opscope.tensor.jit.state import State


class TracerWarning(UserWarning):
    """Something in a traced function is not in its graph, or only as a constant."""


@dataclass
class _Call:
    """An operator that is running."""

    operator: str
    arguments: tuple[Any, ...]
    scope: str | None
    location: str | None
    versions: list[tuple[Tensor, int]] = field(default_factory=list)

    def written(self) -> list[Tensor]:
        return [tensor for tensor, version in self.versions if tensor._version != version]


_INSIDE = object()
"""The context of an operator inside a recorded one."""


class Recording:
    """A block in which operators become nodes of `builder`. `state` gets copies of the tensors that
    they are about to write; `paths` are those of modules by their ids."""

    def __init__(self, builder: GraphBuilder, state: State, paths: dict[int, str]) -> None:
        self._builder = builder
        self._state = state
        self._paths = paths
        self._depth = 0
        self._error: Exception | None = None
        self._warned: set[tuple[str, int]] = set()
        self._is_probing = False
        self._has_grad_mode = is_grad_enabled()
        self._thread = threading.get_ident()

    def __enter__(self) -> None:
        self._handle = add_thread_local_callback(
            self._start,
            self._end,
            needs_inputs=True,
            needs_outputs=True,
            scopes=(RecordScope.FUNCTION, RecordScope.BACKWARD_FUNCTION),
        )
        _listen(self)
        self._is_probing = True
        functions["empty"]((0,))
        if self._is_probing:
            self._leave()
            raise TraceError(
                "operators of this thread are not recorded: recording(False), or a callback, is "
                "around the trace"
            )

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self._leave()
        if error is None and self._error is not None:
            raise self._error

    def _leave(self) -> None:
        _listen_no_more(self)
        remove_callback(self._handle)

    # ---- calls of operators -------------------------------------------------------------------

    def _start(self, fn: RecordFunction) -> object:
        if self._is_probing:
            self._is_probing = False
            return None
        try:
            return self._opened(fn)
        except Exception as error:
            self._fail(error)
            return None

    def _opened(self, fn: RecordFunction) -> object:
        if threading.get_ident() != self._thread:
            raise TraceError(f"{fn.name} runs in a forked task, whose order a graph cannot have")
        if fn.scope is RecordScope.BACKWARD_FUNCTION:
            raise TraceError(f"{fn.name}: a backward pass cannot be part of a graph")
        if fn.name not in operators:
            return None
        self._depth += 1
        if self._depth > 1:
            return _INSIDE
        call = _Call(
            fn.name, fn.whole_inputs(), source_lines.scope(self._paths), source_lines.location()
        )
        for argument in call.arguments:
            for each in argument if isinstance(argument, list) else (argument,):
                if isinstance(each, Tensor):
                    call.versions.append((each, each._version))
        target = call.arguments[0] if call.arguments and fn.name.endswith("_") else None
        if isinstance(target, Tensor):
            for attribute in self._builder.attributes_behind(target):
                self._state.keep(attribute)
        return call

    def _end(self, fn: RecordFunction, context: Any) -> None:
        if context is None:
            return
        self._depth -= 1
        if context is _INSIDE or fn.failed:
            return
        try:
            self._closed(context, fn.whole_outputs())
        except Exception as error:
            self._fail(error)

    def _closed(self, call: _Call, outputs: tuple[Any, ...]) -> None:
        written = call.written()
        flat = outputs[0] if outputs and isinstance(outputs[0], list) else outputs
        given = {id(tensor) for tensor, _ in call.versions} - {id(tensor) for tensor in written}
        into = [
            each
            for each in flat
            if self._builder.origin_of(each) is not None and id(each) not in given
        ]
        for tensor in (*written, *into):
            if not self._builder.is_writable(tensor):
                raise TraceError(
                    f"{call.operator} at {call.location or 'an unknown line'} writes a tensor that "
                    "is neither an example, nor an attribute of the module, nor the result of an "
                    "operator: each run of the graph would write the same one"
                )
        self._builder.add_call(
            call.operator,
            call.arguments,
            outputs,
            is_into=bool(into) and not call.operator.endswith("_"),
            is_detached=self._has_grad_mode and not is_grad_enabled(),
            scope=call.scope,
            location=call.location,
        )

    def _fail(self, error: Exception) -> None:
        self._error = self._error or error

    # ---- elements that become Python values ---------------------------------------------------

    def read(self, tensor: Tensor) -> None:
        """An element of the tensor becomes a Python value."""
        if self._builder.origin_of(tensor) not in (None, "constant"):
            self.warn(
                "a Python value is taken from a tensor; in the graph it is a constant, whatever "
                "the inputs are"
            )

    def warn(self, text: str) -> None:
        """A TracerWarning for the line that is running; one for each line."""
        found = source_lines.line()
        if found is None or found in self._warned:
            return
        self._warned.add(found)
        file, number = found
        warnings.warn_explicit(f"{file}:{number}: {text}", TracerWarning, file, number)


# ---- which recording is on, by thread -----------------------------------------------------------

_on: dict[int, list[Recording]] = {}
_lock = threading.Lock()


def current() -> Recording | None:
    """The recording that is on in this thread."""
    recordings = _on.get(threading.get_ident()) if _on else None
    return recordings[-1] if recordings else None


def _tell(tensor: Tensor) -> None:
    recording = current()
    if recording is not None:
        recording.read(tensor)


def _listen(recording: Recording) -> None:
    with _lock:
        _on.setdefault(threading.get_ident(), []).append(recording)
        set_read_listener(_tell)


def _listen_no_more(recording: Recording) -> None:
    with _lock:
        recordings = _on[threading.get_ident()]
        recordings.remove(recording)
        if not recordings:
            del _on[threading.get_ident()]
        if not _on:
            set_read_listener(None)
