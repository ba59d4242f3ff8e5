"""PyTorch's operators, backward nodes, optimizer steps and record_function blocks as ranges.

native/include/private/torch.h describes the interception: through PyTorch's own callbacks, which
the bridge registers only while a consumer wants ranges. Names, overloads and scopes are PyTorch's.
Times of operators on another device than the CPU are their dispatch times; the facts of the process
say whether it may use such a device.

`torch.compile`: each call of a compiled function is a range `Torch-Compiled Region: ...`, after one
`TorchDynamo Cache Lookup`. With the backends eager and aot_eager, operators inside are visible;
with inductor, those that it leaves to PyTorch (`aten::mm`, `aten::convolution`, ...). The time of
inductor's kernels counts as the region's own, unless they are compiled with the option
`cpp.enable_kernel_profile`: then each is a range, named after the operators in it. A backward
compiled with the forward is one node, `CompiledFunctionBackward`. Events that PyTorch sends only to
its own profiler (`## Call CompiledFxGraph` ..., except in 2.9) are not visible.

A `record_function` that is left on another thread than it was entered on is not recorded, and
counts as dropped. So do its 256 outer ranges if it is nested deeper than that.

An operator that ends by an exception counts as an error. `torch.utils.checkpoint` without
reentrance ends each recomputation by an exception as soon as it has the tensors that it needs: the
operators that this interrupts (for example `aten::addmm` in `aten::linear`) count as errors of
which the program knows nothing.
"""

import os
import sys
from _thread import allocate_lock
from contextlib import suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any

from opscope._native import ffi, lib
from opscope.errors import BridgeError

if TYPE_CHECKING:
    from opscope.bridges.status import BridgeStatus
    from opscope.config import Config

FRAMEWORK = "torch"

PREFIXES = (
    "aten",
    "torch",
    "torchvision",
    "prim",
    "quantized",
    "c10d",
    "autograd",
    "profiler",
    "_c10d_functional",
)

# Names of backward nodes, optimizers, loaders and collectives.
NAMES = (
    r"\w+Backward\d*$|Optimizer\.\w+#|enumerate\(DataLoader\)#|(nccl|gloo|mpi|ucc|xccl):(?!:)"
    r"|DistributedDataParallel\.|Torch-Compiled Region"
)

FOREIGN_PREFIXES = True
"""Also operators that other packages register with PyTorch."""

PROBE = ("x = torch.zeros(1, device='cpu')", "x.neg_()")

LATE_MODULES = ("torch._dynamo",)
"""A program imports it when it compiles."""

_DEVICES = (
    ("cuda", "/dev/nvidiactl", ("CUDA_VISIBLE_DEVICES",)),
    ("hip", "/dev/kfd", ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")),
)
"""Per device: the attribute of torch.version in such a build, the file that its loaded driver
creates, and the environment variables that can hide all devices from a process."""

_IS_BUILT = hasattr(lib, "opscope_torch_detach")
"""False in a build for musl: native/CMakeLists.txt leaves the bridge's C out."""

_HAS_GIL = "t" not in sys.abiflags
"""The bridge has not been tried without it; it is the lock of blocks.c."""

TRIED = (
    *("2.4.1", "2.5.1", "2.6.0", "2.7.1", "2.8.0", "2.9.1", "2.10.0"),
    *("2.11.0", "2.12.1", "2.13.0", "2.14.0", "2.14.1", "2.15.0"),
)
"""Releases that the tests have run with (native/bridges/COVERAGE.md). With the setting
`torch_versions = tried` the bridge attaches to these alone."""

_PARTS = {
    "inputs, outputs and sequence numbers": "OPSCOPE_TORCH_FIELDS",
    "lists and texts": "OPSCOPE_TORCH_VALUES",
    "shapes": "OPSCOPE_TORCH_TENSORS",
    "labels on other threads": "OPSCOPE_TORCH_LABELS",
    "allocated memory": "OPSCOPE_TORCH_MEMORY",
    "backward without repeated states": "OPSCOPE_TORCH_STATES",
    "counts without a callback": "OPSCOPE_TORCH_COUNT",
    "files in archives": "OPSCOPE_TORCH_ARCHIVES",
}
"""The parts of the bridge that may not work with a PyTorch: as shown, and as in C."""

_lock = allocate_lock()
_is_attached = False
_reason = "not attached"
_versions = "verified"
_without: dict[str, str] = {}


def attach() -> None:
    """Makes the PyTorch that the program has imported visible; a second call adds what
    `torch.compile` does, if the program uses it by then (compile.py).

    Raises BridgeError with the reason, and leaves PyTorch unchanged, if PyTorch is not imported,
    the settings exclude its version, or a trial operator is not seen as expected. A part of the
    bridge that this PyTorch does not support stays off; `facts` has the reason.
    """
    global _is_attached, _reason
    with _lock:
        if _is_attached:
            _follow_compilations()
            return
        try:
            _attach(_imported_torch())
        except BridgeError as error:
            _reason = str(error)
            raise
        _is_attached, _reason = True, "attached"
        _follow_compilations()


def _follow_compilations() -> None:
    if LATE_MODULES[0] in sys.modules:
        from opscope.bridges.torch import compile as compilations

        compilations.follow()


def configure(config: "Config") -> None:
    """Takes the settings that decide whether it attaches."""
    global _versions
    _versions = config.torch_versions


def apply(config: "Config") -> None:
    """Applies settings beyond ranges to the attached bridge."""
    formats = [word for word in config.stamp if word in ("torch.save", "torch.export")]
    if formats:
        from opscope.bridges.torch import stamps

        stamps.follow(sys.modules["torch"], formats)


def arriving() -> None:
    """Called before PyTorch runs: logs its API-usage events from the first on.

    The interpreter does not know PyTorch's version yet, so this reads it from PyTorch's files if
    the settings need it.
    """
    if not _IS_BUILT or not _HAS_GIL:
        return
    torch = sys.modules.get("torch")
    directory = os.path.dirname(getattr(torch, "__file__", None) or "")
    if directory and (_versions == "verified" or _is_tried(_version_in(directory))):
        _log_usage(directory)


def _version_in(directory: str) -> str:
    try:
        with open(os.path.join(directory, "version.py"), encoding="utf-8") as file:
            lines = [line for line in file if line.startswith("__version__")]
    except OSError:
        return ""
    return lines[0].partition("=")[2].strip(" '\"\n") if lines else ""


def _is_tried(version: str) -> bool:
    return version.partition("+")[0] in TRIED


def _log_usage(directory: str) -> Any:
    """NULL, or the reason why the events are not logged."""
    libc10 = os.path.join(directory, "lib", "libc10.so")
    return lib.opscope_torch_log_usage(os.fsencode(libc10))


def detach() -> None:
    """Removes the bridge from PyTorch; does nothing unless attached."""
    global _is_attached, _reason
    with _lock:
        if _is_attached:
            from opscope.bridges.torch import blocks

            torch = sys.modules["torch"]
            blocks.unhook(torch)
            lib.opscope_torch_detach()
            if "opscope.bridges.torch.compile" in sys.modules:
                sys.modules["opscope.bridges.torch.compile"].leave()
            if "opscope.bridges.torch.stamps" in sys.modules:
                sys.modules["opscope.bridges.torch.stamps"].leave(torch)
        _is_attached, _reason = False, "not attached"


def facts() -> dict[str, str]:
    """Notes on the process.

    `torch.without`: the parts of the bridge that this PyTorch does not support, with the reasons;
    absent if all work. `torch.device_type`: `cpu` or the device that PyTorch may use, derived from
    PyTorch's build, the files in /dev and the environment, without asking CUDA: that would
    initialize it in the program, and forked children could not use it then.
    """
    notes = {"torch.device_type": _device_type()}
    if _without:
        notes["torch.without"] = "; ".join(f"{part} ({why})" for part, why in _without.items())
    return notes


def _device_type() -> str:
    version: Any = getattr(sys.modules.get("torch"), "version", None)
    for build, path, hiders in _DEVICES:
        is_hidden = any(os.environ.get(name, "0").strip() in ("", "-1") for name in hiders)
        if getattr(version, build, None) and os.path.exists(path) and not is_hidden:
            return "cuda"  # PyTorch's name for ROCm devices too
    return "cpu"


def status() -> "BridgeStatus":
    """The bridge's status."""
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
    if not _IS_BUILT:
        raise BridgeError("opscope for musl has no bridge to PyTorch")
    if not _HAS_GIL:
        raise BridgeError("the bridge to PyTorch needs the GIL; this Python is free-threaded")
    version = str(torch.__version__)
    if _versions == "tried" and not _is_tried(version):
        raise BridgeError(f"torch {version}: not a tried version, as torch_versions demands")
    directory = os.path.dirname(torch.__file__)
    header = os.path.join(directory, "include", "ATen", "record_function.h")
    _judge(version, lib.opscope_torch_trial_begin(os.fsencode(header)))
    from opscope.bridges.torch import blocks

    empty = torch.empty
    fault = None
    try:
        blocks.hook(torch)
        run_trial(torch)
        fault = blocks.follow(torch)
        while lib.opscope_torch_cost_round():
            for _ in range(lib.OPSCOPE_TORCH_COST_CALLS):
                empty(0, device="cpu")
    finally:
        reason = lib.opscope_torch_trial_end()
        if reason != ffi.NULL:
            blocks.unhook(torch)
    _judge(version, reason)
    faults = {part: lib.opscope_torch_fault(getattr(lib, name)) for part, name in _PARTS.items()}
    faults["usage"] = _log_usage(directory)
    _without.clear()
    _without.update((part, _text(why)) for part, why in faults.items() if why != ffi.NULL)
    if fault is not None:
        _without["outer ranges without a callback"] = fault
    # Without it, callbacks that ask for inputs get None for each tensor.
    from opscope.bridges.torch import values as values


def run_trial(torch: Any) -> None:
    """Runs the ranges that the trial expects: an operator, a record_function, a backward node.

    The node is called by itself: a backward would start the threads of PyTorch's engine. If a later
    PyTorch has no such functions, the bridge sees no such ranges, and does without the layout.
    """
    torch.empty(0, device="cpu", pin_memory=False)
    with suppress(Exception):
        with torch.autograd.profiler.record_function("opscope: trial of the bridge"):
            pass
        with torch.inference_mode(False), torch.enable_grad():
            result = torch.empty(0, device="cpu", requires_grad=True).neg()
            result.grad_fn(result.detach())


def _judge(version: str, reason: Any) -> None:
    if reason != ffi.NULL:
        raise BridgeError(f"torch {version}: {_text(reason)}")


def _text(reason: Any) -> str:
    return str(ffi.string(reason).decode())
