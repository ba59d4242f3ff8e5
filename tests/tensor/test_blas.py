"""A matrix product uses as many threads as the pool has free, whatever OpenBLAS was set to; a BLAS
that multiplies wrongly is not used."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

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


# A BLAS of plain loops. `FAULT(...)` is what a wrong one adds to each element.
OWN_BLAS = """
#define GEMM(name, type)                                                                   \\
    void name(int major, int a_order, int b_order, int m, int n, int k, type alpha,        \\
              const type *a, int a_stride, const type *b, int b_stride, type beta,         \\
              type *c, int c_stride)                                                       \\
    {                                                                                      \\
        for (int i = 0; i < m; i++) {                                                      \\
            for (int j = 0; j < n; j++) {                                                  \\
                type sum = 0;                                                              \\
                for (int l = 0; l < k; l++) {                                              \\
                    sum += (a_order == 112 ? a[l * a_stride + i] : a[i * a_stride + l]) *  \\
                           (b_order == 112 ? b[j * b_stride + l] : b[l * b_stride + j]);   \\
                }                                                                          \\
                sum += FAULT(sizeof(type), a_order, b_order, beta, i);                     \\
                c[i * c_stride + j] = alpha * sum + (beta != 0 ? beta * c[i * c_stride + j] : 0); \\
            }                                                                              \\
        }                                                                                  \\
    }
GEMM(own_cblas_sgemm, float)
GEMM(own_cblas_dgemm, double)
"""
LOADED = """
import sys
from opscope import _tensor, tensor as ot
try:
    _tensor.load_blas(sys.argv[1], "own_", "")
except RuntimeError as error:
    print(error)
a = ot.ones(3, 3, dtype=ot.float64)
assert (a @ a).tolist() == [[3.0] * 3] * 3
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="a BLAS is compiled with cc")
@pytest.mark.parametrize(
    "fault",
    [
        "0",
        "bytes == 8",
        "bytes == 4 && a == 112",
        "b == 112 && i == 32",
        "bytes == 4 && beta != 0 && i > 16",
    ],
)
def test_a_blas_that_multiplies_wrongly_is_not_used(fault: str, tmp_path: Path) -> None:
    source, library = tmp_path / "own.c", tmp_path / "own.so"
    source.write_text(OWN_BLAS)
    own = [f"-DFAULT(bytes, a, b, beta, i)=({fault})", "-o", str(library), str(source)]
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", *own], check=True)
    command = [sys.executable, "-c", LOADED, str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == ("" if fault == "0" else f"blas: {library} multiplies wrongly\n")
