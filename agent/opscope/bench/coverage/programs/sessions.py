"""ONNX Runtime: a small network of matrix products, run over and over."""

from collections.abc import Callable

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper


def setup() -> Callable[[], None]:
    generator = np.random.default_rng(0)
    weights = [generator.standard_normal((256, 256)).astype(np.float32) for _ in range(4)]
    nodes, last = [], "x"
    for number in range(len(weights)):
        nodes.append(helper.make_node("MatMul", [last, f"w{number}"], [f"p{number}"]))
        nodes.append(helper.make_node("Relu", [f"p{number}"], [f"r{number}"]))
        last = f"r{number}"
    shape = [None, 256]
    graph = helper.make_graph(
        nodes,
        "layers",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(last, TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(value, f"w{number}") for number, value in enumerate(weights)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    batch = generator.standard_normal((64, 256)).astype(np.float32)

    def step() -> None:
        for _ in range(200):
            session.run(None, {"x": batch})

    return step
