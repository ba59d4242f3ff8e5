"""`LoadedModel`: one version of a model, which runs batches of requests.

It knows nothing of queues and threads: executor.py calls it, on threads of its own.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from opscope import tensor as ot
from opscope.errors import OpscopeError
from opscope.record.ranges import record_function
from opscope.serving import datatypes, model_config, tensors
from opscope.serving.faults import Reason, RequestError
from opscope.serving.model_config import ModelConfig
from opscope.serving.observed import INFER
from opscope.serving.request import InferReply, InferRequest
from opscope.tensor import jit
from opscope.tensor.archive.files import Archive
from opscope.tensor.jit.compiled import CompiledModel
from opscope.tensor.jit.torchscript.archive import is_torchscript

_TEXT_LIMIT = 500
_COPY_BYTES = 1 << 30
_EXAMPLE = (
    '{"inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}], '
    '"outputs": [{"name": "y", "datatype": "FP32", "shape": [-1, 2]}], "max_batch_size": 8}'
)


class LoadedModel:
    """A model that is in memory, with its description. Its runs have the label `model_id`."""

    def __init__(self, name: str, version: str, model: Any, config: ModelConfig) -> None:
        """`model`: a CompiledModel, or any function of tensors."""
        self.name = name
        self.version = version
        self.config = config
        self._writes = False
        if isinstance(model, CompiledModel):
            self._writes = any(
                kind.startswith("core::") and kind.endswith("_")
                for graph in model.inlined_graphs().values()
                for kind in graph.operators()
            )
            model = CompiledModel.of(replace(model.parts, model_id=name))
        self._model = model

    def run(self, requests: Sequence[InferRequest]) -> list[InferReply | RequestError]:
        """The answers of one batch, in order. A request that fails alone does not affect others."""
        try:
            return list(self._run(requests))
        except Exception as error:
            if len(requests) == 1:
                return [_as_fault(error)]
        return [answer for one in requests for answer in self.run([one])]

    def _run(self, requests: Sequence[InferRequest]) -> list[InferReply]:
        outputs = self._call(self._inputs(requests))
        rows = self._rows(requests)
        whole = sum(rows)
        replies = []
        first = 0
        for one, count in zip(requests, rows, strict=True):
            chosen = {name: outputs[name] for name in one.outputs or outputs}
            if len(requests) > 1:
                chosen = {
                    name: tensors.rows(tensor, first, count) for name, tensor in chosen.items()
                }
            replies.append(
                InferReply(
                    {name: tensors.in_order(tensor) for name, tensor in chosen.items()}, whole
                )
            )
            first += count
        return replies

    def _inputs(self, requests: Sequence[InferRequest]) -> Sequence[ot.Tensor]:
        if len(requests) > 1:
            return [
                tensors.batch(parts)
                for parts in zip(*(one.inputs for one in requests), strict=True)
            ]
        if self._writes:
            # The bytes of a request belong to gRPC, and are read-only.
            return [tensors.own(one) for one in requests[0].inputs]
        return requests[0].inputs

    def _rows(self, requests: Sequence[InferRequest]) -> list[int]:
        if not self.config.is_batched:
            return [1]
        return [one.inputs[0].shape[0] for one in requests]

    def _call(self, inputs: Sequence[ot.Tensor]) -> dict[str, ot.Tensor]:
        with ot.no_grad(), record_function(INFER):
            made = self._model(*inputs)
        outputs = made if isinstance(made, tuple) else (made,)
        specs = self.config.outputs
        if len(outputs) != len(specs):
            raise RequestError(
                Reason.MODEL, f"the model made {len(outputs)} outputs instead of {len(specs)}"
            )
        rows = inputs[0].shape[0] if self.config.is_batched else None
        for tensor, spec in zip(outputs, specs, strict=True):
            if not isinstance(tensor, ot.Tensor):
                raise RequestError(Reason.MODEL, f"the output {spec.name!r} is no tensor")
            if datatypes.of(tensor).name != spec.datatype or not spec.fits(tensor.shape):
                raise RequestError(
                    Reason.MODEL,
                    f"the output {spec.name!r} is {datatypes.of(tensor).name} of the shape "
                    f"{list(tensor.shape)}, and not as described",
                )
            if rows is not None and tensor.shape[0] != rows:
                raise RequestError(
                    Reason.MODEL, f"the output {spec.name!r} has {tensor.shape[0]} rows for {rows}"
                )
        return {spec.name: tensor for spec, tensor in zip(specs, outputs, strict=True)}


def load(name: str, version: str, path: str, description: str | None = None) -> LoadedModel:
    """The model of an archive, which does not need its file any more: archives are mapped, and one
    that is written over in place would change the model that answers.

    `description` replaces those of the files (model_config.py). Raises OpscopeError, naming the
    file, if it is unreadable or no model, or if nothing describes its inputs and outputs.
    """
    copy = f"/proc/self/fd/{(descriptor := os.memfd_create(name))}"
    try:
        _copy(path, descriptor)
        text = description or model_config.beside(path) or _in_archive(copy)
        if text is None:
            raise OpscopeError(
                f"{path}: nothing says which inputs the model takes: add the extra file "
                f"{model_config.EXTRA_FILE}, or the file {path}.json, such as {_EXAMPLE}"
            )
        # The protocol's name for such archives.
        platform = "pytorch_torchscript" if is_torchscript(Archive(copy)) else "opscope_graph"
        config = model_config.parse(text, platform)
        return LoadedModel(name, version, jit.load(copy), config)
    except OSError as error:
        raise OpscopeError(f"{path}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        text = str(error).replace(copy, path)
        raise OpscopeError(text if path in text else f"{path}: {text}") from None
    finally:
        os.close(descriptor)


def _copy(path: str, to: int) -> None:
    with open(path, "rb") as file:
        while os.sendfile(to, file.fileno(), None, _COPY_BYTES):
            pass


def _in_archive(path: str) -> str | None:
    archive = Archive(path)
    if model_config.EXTRA_FILE not in archive.extra_names():
        return None
    return archive.extra(model_config.EXTRA_FILE).decode()


def _as_fault(error: Exception) -> RequestError:
    if isinstance(error, RequestError):
        return error
    if isinstance(error, MemoryError):
        return RequestError(Reason.OVERLOAD, "no memory for this request")
    text = f"{type(error).__name__}: {error}"
    return RequestError(Reason.MODEL, text[:_TEXT_LIMIT])
