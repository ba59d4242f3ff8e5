"""The messages of the Open Inference Protocol, made from inference.proto.

They are in a pool of their own: the clients of Triton and KServe define messages of the same names
in the process's pool, where a name may be defined once.
"""

from __future__ import annotations

from importlib import resources
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

SERVICE = "inference.GRPCInferenceService"


def _pool() -> descriptor_pool.DescriptorPool:
    found = descriptor_pool.DescriptorPool()
    compiled = resources.files("opscope.serving").joinpath("inference.binpb").read_bytes()
    for file in descriptor_pb2.FileDescriptorSet.FromString(compiled).file:
        found.Add(file)
    return found


POOL = _pool()
_METHODS = POOL.FindServiceByName(SERVICE).methods
REQUESTS: dict[str, Any] = {
    one.name: message_factory.GetMessageClass(one.input_type) for one in _METHODS
}
"""The class of each call's request, by the name of the call."""
REPLIES: dict[str, Any] = {
    one.name: message_factory.GetMessageClass(one.output_type) for one in _METHODS
}

EXTENSIONS = ("binary_tensor_data", "model_repository")
"""What the server's metadata names: Triton's extensions."""
