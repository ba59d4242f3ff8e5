"""torch.backends, for programs that set its switches: none of these devices is here.

The core's results do not depend on switches: they are bit-identical from run to run.
"""

from __future__ import annotations

from opscope import _tensor


class _Backend:
    """Takes any switch; `is_available()` is False."""

    benchmark = False
    deterministic = True
    enabled = False

    def is_available(self) -> bool:
        return False

    def is_built(self) -> bool:
        return False


cudnn = _Backend()
mps = _Backend()


class _Cpu:
    """What is known of the processor."""

    def get_cpu_capability(self) -> str:
        """The instructions that operators use: "DEFAULT", "AVX2" or "AVX512"."""
        level = _tensor.cpu_level()
        return "DEFAULT" if level == "baseline" else level.upper()


cpu = _Cpu()
