"""`Service`: what the server does, independent of the protocol: answers, metadata, readiness."""

from __future__ import annotations

from collections.abc import Sequence

import opscope
from opscope import tensor as ot
from opscope.serving import request as requests
from opscope.serving.executor import Executor
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

    async def infer(
        self,
        executor: Executor,
        inputs: Sequence[tuple[str, ot.Tensor]],
        outputs: Sequence[str],
        *,
        timeout_ns: int | None = None,
        trace: TraceContext | None = None,
    ) -> InferReply:
        """Checks a request and runs it. Raises RequestError."""
        config = executor.model.config
        try:
            request = InferRequest(
                requests.ordered_inputs(config, inputs),
                requests.wanted_outputs(config, outputs),
                timeout_ns,
                trace,
            )
        except RequestError as fault:
            executor.observer.failed(fault.reason)
            raise
        size = request.bytes
        if not self.admission.enter(size):
            executor.observer.failed(Reason.OVERLOAD)
            raise RequestError(Reason.OVERLOAD, "the server has as many requests as it takes")
        try:
            return await executor.infer(request)
        finally:
            self.admission.leave(size)
