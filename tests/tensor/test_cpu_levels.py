"""The operators for CPUs with fewer instructions give the same results.

An environment variable chooses them.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from opscope import _tensor
from opscope import tensor as ot

LEVELS = ["baseline", "avx2", "avx512"]

# Prints the level, and the largest differences of float32 from float64, relative to the largest
# number.
PROGRAM = """
from opscope import _tensor, tensor as ot
print(_tensor.cpu_level(), ot.backends.cpu.get_cpu_capability())
for images, kernels, stride, groups in [
    ((3, 20, 19, 33), (21, 20, 3, 3), 1, 1),
    ((9, 40, 7, 7), (36, 40, 3, 3), 1, 1),
    ((2, 6, 31, 34), (18, 6, 5, 3), 2, 1),
    ((2, 12, 21, 21), (12, 1, 3, 3), 1, 12),
]:
    ot.manual_seed(1)
    results = []
    x, w = ot.randn(*images), ot.randn(*kernels)
    for dtype in (ot.float32, ot.float64):
        a, b = (t.detach().to(dtype).requires_grad_() for t in (x, w))
        out = ot.conv2d(a, b, None, stride, 1, 1, groups)
        out.square().sum().backward()
        results.append([out.detach(), a.grad, b.grad])
    for one, other in zip(*results, strict=True):
        print(float((one.to(ot.float64) - other).abs().max() / other.abs().max()))
"""


@pytest.mark.parametrize("level", LEVELS)
def test_convolutions_at_each_level(level: str) -> None:
    if LEVELS.index(level) > LEVELS.index(_tensor.cpu_level()):
        pytest.skip(f"this CPU has no {level}")
    environment = os.environ | {"OPSCOPE_TENSOR_CPU_LEVEL": level}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    names, *differences = done.stdout.splitlines()
    assert names.split() == [level, "DEFAULT" if level == "baseline" else level.upper()]
    assert len(differences) == 12
    assert max(map(float, differences)) < 1e-6


def test_a_level_that_does_not_exist_is_the_cpus_own() -> None:
    environment = os.environ | {"OPSCOPE_TENSOR_CPU_LEVEL": "avx1024"}
    program = "from opscope import _tensor; print(_tensor.cpu_level())"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert LEVELS.index(done.stdout.strip()) >= LEVELS.index(_tensor.cpu_level())
    assert ot.backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2", "AVX512")
