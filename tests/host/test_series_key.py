"""The framework of a series, from its operator's name."""

import pytest

from opscope.host.snapshot import SeriesKey


@pytest.mark.parametrize(
    ("framework", "ops"),
    [
        (
            "torch",
            "aten::mm AddmmBackward0 MyFunctionBackward torch::autograd::AccumulateGrad "
            "autograd::engine::evaluate_function:_AddmmBackward0 Optimizer.step#Adam.step "
            "Optimizer.zero_grad#SGD.zero_grad DistributedDataParallel.forward gloo:all_reduce "
            "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__ nccl:all_reduce "
            "c10d::allreduce_",
        ),
        ("numpy", "numpy::add numpy::add.reduce"),
        ("opscope", "core::mm core::ReluBackward"),
        ("gloo", "gloo::other"),
        ("user", "tokenize step Backwards"),
        ("other", "other"),
    ],
)
def test_the_framework_of_an_operator(framework: str, ops: str) -> None:
    for op in ops.split():
        assert SeriesKey("service", op, "forward", ()).framework == framework, op
