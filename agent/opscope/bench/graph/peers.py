"""The peers of `bench graph`: the same chains and networks in other runtimes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_Call = Callable[[], object]


def _torch_chain(nodes: int) -> Any:
    torch: Any = import_module("torch")

    def forward(self: Any, x: Any, y: Any) -> Any:
        for _ in range(nodes):
            x = x + y
        return x

    return type("Chain", (torch.nn.Module,), {"forward": forward})().eval()


def _torchscript(nodes: int, folder: Path) -> _Call | None:
    if find_spec("torch") is None:
        return None
    torch: Any = import_module("torch")
    torch.set_num_threads(1)
    x, y = torch.ones(1), torch.ones(1)
    traced = torch.jit.trace(_torch_chain(nodes), (x, y))
    frozen = torch.jit.freeze(traced)

    def call() -> object:
        with torch.no_grad():
            return frozen(x, y)

    for _ in range(5):  # the executor specializes in its first runs
        call()
    return call


def _onnxruntime(nodes: int, folder: Path) -> _Call | None:
    if find_spec("onnxruntime") is None or find_spec("onnx") is None:
        return None
    import numpy as np

    onnx: Any = import_module("onnx")
    onnxruntime: Any = import_module("onnxruntime")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    made = [
        helper.make_node("Add", ["x" if i == 0 else f"v{i - 1}", "y"], [f"v{i}"])
        for i in range(nodes)
    ]
    ends = [helper.make_tensor_value_info(name, kind, [1]) for name in ("x", "y", f"v{nodes - 1}")]
    graph = helper.make_graph(made, "chain", ends[:2], ends[2:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    one = np.ones(1, np.float32)
    return partial(session.run, None, {"x": one, "y": one})


def _executorch(nodes: int, folder: Path) -> _Call | None:
    if find_spec("executorch") is None or find_spec("torch") is None:
        return None
    torch: Any = import_module("torch")
    to_edge = import_module("executorch.exir").to_edge
    runtime = import_module("executorch.runtime").Runtime
    x, y = torch.ones(1), torch.ones(1)
    program = to_edge(torch.export.export(_torch_chain(nodes), (x, y))).to_executorch()
    path = folder / "chain.pte"
    path.write_bytes(program.buffer)
    method = runtime.get().load_program(path).load_method("forward")
    return partial(method.execute, [x, y])


CHAINS: dict[str, Callable[[int, Path], _Call | None]] = {
    "torchscript": _torchscript,
    "onnxruntime": _onnxruntime,
    "executorch": _executorch,
}
"""By the peer's name: a chain of so many additions of one element; None: it is not installed."""


# ---- resnet18 ------------------------------------------------------------------------------------


def _resnet_file(folder: Path) -> Path | None:
    """A traced resnet18 with random weights, as TorchScript."""
    if find_spec("torch") is None:
        return None
    torch: Any = import_module("torch")
    resnet18 = import_module("opscope.bench.truth.programs.resnet18").resnet18
    path = folder / "resnet18.torchscript.pt"
    if not path.exists():
        net = resnet18(classes=1000).eval()
        torch.jit.save(torch.jit.trace(net, torch.randn(1, 3, 224, 224)), path)
    return path


def _resnet_run(folder: Path) -> tuple[_Call, _Call] | None:
    path = _resnet_file(folder)
    if path is None:
        return None
    from opscope import tensor
    from opscope.tensor import jit

    torch: Any = import_module("torch")
    torch.set_num_threads(1)
    theirs = torch.jit.freeze(torch.jit.load(path).eval())
    image = torch.randn(1, 3, 224, 224)
    own = jit.freeze(jit.load(path))
    own_image = tensor.from_numpy(image.numpy())

    def call() -> object:
        with torch.no_grad():
            return theirs(image)

    for _ in range(5):
        call()
    return call, partial(own, own_image)


def _resnet_load(folder: Path) -> tuple[_Call, _Call] | None:
    path = _resnet_file(folder)
    if path is None:
        return None
    from opscope.tensor import jit

    torch: Any = import_module("torch")
    own = folder / "resnet18.pt"
    jit.save(jit.load(path), own)
    return partial(torch.jit.load, path), partial(jit.load, own)


RESNET: dict[str, Callable[[Path], tuple[_Call, _Call] | None]] = {
    "resnet18_vs_torchscript": _resnet_run,
    "load_ms": _resnet_load,
}
"""By the case: the peer's call and that of a graph; None: PyTorch is missing."""
