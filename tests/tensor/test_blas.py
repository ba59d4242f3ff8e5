"""A matrix product uses as many threads as the pool has free, whatever OpenBLAS was set to."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from opscope.tensor import blas

PROGRAM = """
import ctypes
import sys
from opscope import tensor as ot
from opscope._native import lib
from opscope.tensor import blas

library = ctypes.CDLL(blas.load())
suffix = "64_" if "64_" in library._name else ""
threads = getattr(library, f"scipy_openblas_get_num_threads{suffix}")
a = ot.ones(300, 300)
for wanted in map(int, sys.argv[1:]):
    assert lib.opscope_pool_set_threads(wanted) == 0
    assert float((a @ a)[7, 9]) == 300
    print(threads())
"""


def threads_after_products(own: int, *pool: int) -> list[int]:
    environment = os.environ | {"OPENBLAS_NUM_THREADS": str(own)}
    command = [sys.executable, "-c", PROGRAM, *map(str, pool)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return [int(line) for line in result.stdout.split()]


@pytest.mark.skipif(blas.load() is None, reason="OpenBLAS is not installed")
def test_products_use_the_threads_of_the_pool_but_never_more_than_openblas_had() -> None:
    assert threads_after_products(2, 2, 1, 2, 3) == [2, 1, 2, 2]
    assert threads_after_products(1, 4, 1) == [1, 1]
