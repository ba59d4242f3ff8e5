"""A window that opens within a backward node records phase backward."""

from pathlib import Path
from typing import Any

import opscope.tensor as ot
from opscope._native import lib
from opscope.host.host import Host
from opscope.record import recorder


class Opening(ot.Function):
    @staticmethod
    def forward(ctx: Any, x: ot.Tensor) -> ot.Tensor:
        return x + 1

    @staticmethod
    def backward(ctx: Any, gradient: ot.Tensor) -> ot.Tensor:
        lib.opscope_recorder_window_begin(1.0)
        return gradient * 2


def test_operators_of_a_node_that_began_before_the_window_are_backward(tmp_path: Path) -> None:
    x = ot.ones(3, requires_grad=True)
    recorder.start(str(tmp_path), window_ms=1.0, period_ms=1e8)
    try:
        Opening.apply(x).sum().backward()
        ot.exp(x)
        lib.opscope_recorder_window_end()
        keys = Host([str(tmp_path)], consume=False).collect().keys
    finally:
        recorder.stop(discard=True)
    phases = {key.op: key.phase for key in keys}
    assert phases["core::mul"] == "backward"
    assert phases["core::exp"] == "forward"
