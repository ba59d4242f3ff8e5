"""Follows record_function blocks by the two operators that begin and end them.

This is for `record_function`, `Optimizer.step` and DataLoader between windows: a callback of
PyTorch's for them would make each node of a backward slower (native/bridges/torch/attach.c).
"""

from contextlib import suppress
from typing import Any

from opscope._native import lib


def _operators(torch: Any) -> "tuple[tuple[Any, bool], ...]":
    """The objects that Python calls, and whether each ends a block."""
    enter = torch.ops.profiler._record_function_enter_new
    leave = torch.ops.profiler._record_function_exit
    return (
        (enter, False),
        (enter.default, False),
        (leave, True),
        (leave._RecordFunction, True),
    )


def hook(torch: Any) -> None:
    """Hooks the operators, before the trial. Those that this PyTorch does not have stay as they
    are: `follow` then finds that the trial's block was not seen."""
    with suppress(Exception):
        builtins = torch.jit._builtins
        for operator, is_end in _operators(torch):
            name = builtins._find_builtin(operator._op)
            if lib.opscope_torch_hook_block(id(operator), is_end) and name is not None:
                builtins._register_builtin(operator._op, name)  # TorchScript finds it there


def unhook(torch: Any) -> None:
    """Restores the operators."""
    lib.opscope_torch_follow_blocks(False)
    with suppress(Exception):
        for operator, _ in _operators(torch):
            lib.opscope_torch_unhook_block(id(operator))


def follow(torch: Any) -> "str | None":
    """After the trial: starts following blocks, or restores the operators and returns why."""
    if not lib.opscope_torch_sees_blocks():
        unhook(torch)
        return "record_function does not call the known operators"
    lib.opscope_torch_follow_blocks(True)
    return None
