"""Ranges of ints. Their bounds may be unknown before the run."""

from __future__ import annotations

from opscope.tensor.jit.torchscript import scalars
from opscope.tensor.jit.torchscript.values import Value
from opscope.tensor.jit.torchscript.writer import Writer


class Range:
    """ValueError for a step that is not known, or below one."""

    def __init__(self, start: Value, stop: Value, step: Value) -> None:
        if not isinstance(step, int) or step < 1:
            raise ValueError("a range whose step is not known, or below one")
        self.start, self.stop, self.step = start, stop, step

    def rounds(self, writer: Writer) -> Value:
        distance = scalars.two(writer, "sub", self.stop, self.start)
        if self.step == 1:
            return distance
        more = scalars.two(writer, "add", distance, self.step - 1)
        return scalars.two(writer, "floordiv", more, self.step)

    def item_at(self, writer: Writer, round: Value) -> Value:
        past = round if self.step == 1 else scalars.two(writer, "mul", round, self.step)
        return past if self.start == 0 else scalars.two(writer, "add", self.start, past)
