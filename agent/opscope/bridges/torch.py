"""PyTorch's operators, backward nodes, optimizer steps and record_function blocks as ranges.

How they are caught stands in native/include/opscope/torch.h: by PyTorch's own callbacks, to which
the bridge is added only while somebody wants ranges. Names, overloads and scopes are PyTorch's.
Times of operators on another device than the CPU are those of their dispatch; that there may be
one is among the facts of the process.

Of ``torch.compile``: each call of a compiled function is a range ``Torch-Compiled Region: ...``,
after one ``TorchDynamo Cache Lookup``. Operators within are seen with the backends eager and
aot_eager, with inductor those it leaves to PyTorch (``aten::mm``, ``aten::convolution``, ...); the
kernels it makes are time of the region itself, unless they are compiled with the option
``cpp.enable_kernel_profile``: then each is a range. A backward made with the forward is one node,
``CompiledFunctionBackward``. What PyTorch tells its own profiler alone (``## Call CompiledFxGraph``
...) is not seen.

A ``record_function`` that is left on another thread than it was entered on is not recorded; it
counts as dropped. So do the 256 around it where one is nested deeper than that.

An operator that an exception leaves is an error. ``torch.utils.checkpoint`` without reentrance ends
each recomputation by an exception, as soon as it has what it needs: the operators that this leaves
(``aten::addmm`` in ``aten::linear``, say) have an error then, of which the program knows nothing.
"""

import os
import sys
from _thread import allocate_lock
from types import ModuleType
from typing import TYPE_CHECKING, Any

from opscope._native import ffi, lib
from opscope.errors import BridgeError

if TYPE_CHECKING:
    from opscope.bridges.status import BridgeStatus
    from opscope.config import Config

LATE_MODULES = ()

_DEVICES = (
    ("cuda", "/dev/nvidiactl", ("CUDA_VISIBLE_DEVICES",)),
    ("hip", "/dev/kfd", ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")),
)
"""What torch.version says of a build, what there is where the driver is loaded, and what may hide
all devices from a process."""

_COST_CALLS = range(lib.OPSCOPE_TORCH_COST_CALLS)

_lock = allocate_lock()
_is_attached = False
_is_producing = False
_reason = "not attached"


def attach() -> None:
    """Makes the PyTorch that the program has imported visible; repeated, does nothing.

    Raises BridgeError with the reason, and leaves PyTorch as it is, where there is no PyTorch, its
    version is unknown, or one operator run on trial is not seen as expected.
    """
    global _is_attached, _reason
    with _lock:
        if _is_attached:
            return
        try:
            _attach(_imported_torch())
        except BridgeError as error:
            _reason = str(error)
            raise
        _is_attached, _reason = True, "attached"


def apply(config: "Config") -> None:
    """What the settings ask of an attached bridge beside ranges. BridgeError where that fails."""
    global _is_producing
    if config.producer:
        from opscope.bridges import torch_producer

        torch_producer.add_facts(config.producer)
        _is_producing = True


def arriving() -> None:
    """PyTorch is about to run: its API-usage events are logged from the first on.

    Its version is not known to the interpreter yet, so it is looked up in its files.
    """
    torch = sys.modules.get("torch")
    directory = os.path.dirname(getattr(torch, "__file__", None) or "")
    try:
        with open(os.path.join(directory, "version.py"), encoding="utf-8") as file:
            lines = [line for line in file if line.startswith("__version__")]
    except OSError:
        return
    if directory and lines:
        _log_usage(lines[0].partition("=")[2].strip(" '\"\n"), directory)


def _log_usage(version: str, directory: str) -> None:
    libc10 = os.path.join(directory, "lib", "libc10.so")
    lib.opscope_torch_log_usage(version.encode(), os.fsencode(libc10))


def detach() -> None:
    """PyTorch calls the bridge no more; without attach, does nothing."""
    global _is_attached, _is_producing, _reason
    with _lock:
        if _is_attached:
            lib.opscope_torch_detach()
        if _is_producing:
            lib.opscope_torch_clear_files()
            _is_producing = False
        _is_attached, _reason = False, "not attached"


def facts() -> dict[str, str]:
    """Notes on the process: ``torch.device_type``, ``cpu`` or what PyTorch may send its work to.

    From how PyTorch was built, from what is in /dev and from what the environment hides, as asking
    CUDA would start it in the program, whose forked children could then not use it.
    """
    version: Any = getattr(sys.modules.get("torch"), "version", None)
    for build, path, hiders in _DEVICES:
        is_hidden = any(os.environ.get(name, "0").strip() in ("", "-1") for name in hiders)
        if getattr(version, build, None) and os.path.exists(path) and not is_hidden:
            return {"torch.device_type": "cuda"}  # which is also what PyTorch calls those of ROCm
    return {"torch.device_type": "cpu"}


def status() -> "BridgeStatus":
    """How the bridge stands now."""
    from opscope.bridges.status import BridgeStatus

    torch = sys.modules.get("torch")
    return BridgeStatus(
        attached=_is_attached,
        reason=_reason,
        version=str(getattr(torch, "__version__", "")),
        pointers=0,
        missed={},
    )


def _imported_torch() -> ModuleType:
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "__version__") or not hasattr(torch, "empty"):
        raise BridgeError("torch is not imported")
    return torch


def _attach(torch: Any) -> None:
    version = str(torch.__version__)
    _judge(version, lib.opscope_torch_trial_begin(version.encode()))
    empty = torch.empty
    try:
        empty(0, device="cpu")
        while lib.opscope_torch_cost_round():
            for _ in _COST_CALLS:
                empty(0, device="cpu")
    finally:
        reason = lib.opscope_torch_trial_end()
    _judge(version, reason)
    _log_usage(version, os.path.dirname(torch.__file__))
    # Else a callback that asks for inputs sees None for each tensor.
    from opscope.bridges import torch_values as torch_values


def _judge(version: str, reason: Any) -> None:
    if reason != ffi.NULL:
        raise BridgeError(f"torch {version}: {ffi.string(reason).decode()}")
