"""`Service`: what the server does, independent of the protocol: answers, metadata, readiness."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

import opscope
from opscope import tensor as ot
from opscope.serving import request as requests
from opscope.serving.executor import Done, Executor, settle
from opscope.serving.faults import Reason, RequestError
from opscope.serving.limits import Admission, Limits
from opscope.serving.repository import Repository
from opscope.serving.request import InferReply, InferRequest
from opscope.serving.trace_context import TraceContext

NAME = "opscope"
VERSION = opscope.__version__


class Service:
    """The models, and the limits of what is in flight."""

    def __init__(self, repository: Repository, limits: Limits) -> None:
        self.repository = repository
        self.limits = limits
        self.admission = Admission(limits)
        self.http_admission = Admission(limits)
        """Of bodies that HTTP receives: their memory is taken before they are requests."""

    async def infer(self, executor: Executor, request: InferRequest) -> InferReply:
        """Runs a request. Raises RequestError."""
        answer: asyncio.Future[InferReply] = asyncio.get_running_loop().create_future()
        cancel = self.submit(executor, request, partial(settle, answer))
        try:
            return await answer
        except asyncio.CancelledError:
            cancel()
            raise

    def submit(self, executor: Executor, request: InferRequest, done: Done) -> Callable[[], None]:
        """Puts a request into its model's queue; `done` gets the answer later, unless the function
        that is returned is called before. Raises RequestError."""
        admission = self.admission
        size = request.bytes
        if not admission.enter(size):
            executor.observer.failed(Reason.OVERLOAD)
            raise RequestError(Reason.OVERLOAD, "the server has as many requests as it takes")

        def finish(answer: InferReply | RequestError) -> None:
            admission.leave(size)
            done(answer)

        def cancel() -> None:
            if executor.cancel(ticket):
                admission.leave(size)

        try:
            ticket = executor.submit(request, finish)
        except BaseException:
            admission.leave(size)
            raise
        return cancel


def checked(
    executor: Executor,
    inputs: Sequence[tuple[str, ot.Tensor]],
    outputs: Sequence[str],
    timeout_ns: int | None,
    trace: TraceContext | None,
) -> InferRequest:
    """The request, as the model takes it. Raises RequestError."""
    config = executor.model.config
    return InferRequest(
        requests.ordered_inputs(config, inputs),
        requests.wanted_outputs(config, outputs),
        timeout_ns,
        trace,
    )
