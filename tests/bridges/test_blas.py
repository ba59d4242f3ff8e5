"""BLAS and LAPACK as NumPy, SciPy and scikit-learn call them from C.

Programs of their own, because what counts is the state of a package at its import.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from opscope.host.host import Host
from opscope.host.snapshot import SELF_NS, TOTAL_NS
from opscope.segments import directories

_BEFORE = """
import collections, json, os, sys
import opscope

names, inputs = collections.Counter(), {}

def start(fn):
    if fn.name.startswith(("blas::", "lapack::")):
        names[fn.name] += 1
        inputs[fn.name] = fn.inputs

opscope.attach()
assert opscope.attach_status().attached, opscope.attach_status()
handle = opscope.add_global_callback(start, needs_inputs=True)
import numpy as np
from opscope.bridges import blas
x = np.random.default_rng(0).standard_normal((64, 48))
y = x.T @ x + np.eye(48)
single, twice = x.astype("f4"), x.astype("c8")
names.clear()
"""


def _run(program: str, directory: Path, **variables: str) -> Any:
    """What the program prints last, as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", _BEFORE + program],
        env={
            "PATH": "/usr/bin:/bin",
            "OPSCOPE_SAMPLING": "1",
            "OPSCOPE_DIR": str(directory / "segments"),
            "OPENBLAS_NUM_THREADS": "1",
            **variables,
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_numpys_calls_are_counted_with_their_sizes(tmp_path: Path) -> None:
    counts, sizes = _run(
        """
results = [
    x @ y, single.T @ twice, y @ x[0], x.T @ x, np.dot(y, y), np.linalg.solve(y, x.T),
    np.linalg.inv(y), np.linalg.cholesky(y), np.linalg.svd(x), np.linalg.eigh(y),
    np.linalg.eig(y), np.linalg.qr(x), np.linalg.lstsq(x, x[:, 0]), np.linalg.det(y),
]
print(json.dumps([names, inputs]))
""",
        tmp_path,
    )
    assert counts == {
        "blas::dgemm": 2,
        "blas::cgemm": 1,
        "blas::dsyrk": 1,
        "lapack::dgesv": 2,
        "lapack::dpotrf": 1,
        "lapack::dgesdd": 1,
        "lapack::dsyevd": 1,
        "lapack::dgeev": 1,
        "lapack::dgeqrf": 1,
        "lapack::dorgqr": 1,
        "lapack::dgelsd": 1,
        "lapack::dgetrf": 1,
    }
    assert sizes["blas::cgemm"] == [48, 48, 64]
    assert sizes["blas::dsyrk"] == [48, 64]
    assert sizes["lapack::dgesv"] == [48, 48]
    assert sizes["lapack::dgesdd"] == [64, 48]
    assert sizes["lapack::dgelsd"] == [64, 48, 1]


def test_calls_that_are_too_small_are_no_ranges_and_all_results_stay_the_same(
    tmp_path: Path,
) -> None:
    """Bit by bit, observed and not, and after the bridge has gone."""
    counts, afterwards = _run(
        """
def work():
    stack = np.arange(27.0).reshape(3, 3, 3) + np.eye(3)
    return [
        stack @ stack, np.linalg.inv(stack), y[:9, :9] @ x[0, :9], y @ y, single @ single.T,
        np.linalg.solve(y, x.T), *np.linalg.eig(y), *np.linalg.svd(twice),
    ]

seen = [work() for _ in range(3)]
counts = dict(names)
pointers = blas.status().pointers
opscope.detach()
names.clear()
plain = work()
assert pointers > 30 and blas.status().pointers == 0, pointers
assert all(np.array_equal(a, b) for each in seen for a, b in zip(each, plain))
print(json.dumps([counts, names]))
""",
        tmp_path,
    )
    assert counts == {
        "blas::dgemm": 3,
        "blas::ssyrk": 3,
        "lapack::dgesv": 3,
        "lapack::dgeev": 3,
        "lapack::zgesdd": 3,
    }
    assert afterwards == {}


def test_scipy_and_scikit_learn_call_through_their_own_copy(tmp_path: Path) -> None:
    counts, missed = _run(
        """
from scipy import linalg
from sklearn.linear_model import Ridge
linalg.lu_factor(y), linalg.blas.dgemm(1.0, y, y), linalg.eigh(y), linalg.cho_factor(y)
Ridge(solver="cholesky").fit(x, x[:, 0])
print(json.dumps([names, blas.status().missed]))
""",
        tmp_path,
    )
    expected = {
        "lapack::dgetrf": 1,
        "lapack::dsyevr": 1,
        "lapack::dpotrf": 2,
        "lapack::dpotrs": 1,
    }
    assert {name: counts.get(name) for name in expected} == expected
    assert counts["blas::dgemm"] >= 1
    assert missed == {}


def test_a_callback_of_scipy_that_raises_leaves_no_open_range(tmp_path: Path) -> None:
    """f2py leaves the routine by longjmp."""
    counts = _run(
        """
from scipy import linalg
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # f2py prints
def sort(value):
    raise KeyError(value)
for _ in range(3):
    try:
        linalg.schur(y, sort=sort)
    except KeyError:
        pass
names.clear()
y @ y, linalg.lu_factor(y)
opscope.remove_callback(handle)
print(json.dumps(names))
""",
        tmp_path,
    )
    assert counts == {"blas::dgemm": 1, "lapack::dgetrf": 1}


def test_each_thread_and_each_forked_child_counts_its_calls(tmp_path: Path) -> None:
    counts, child = _run(
        """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(4) as pool:
    list(pool.map(lambda i: y @ y, range(100)))
counts = dict(names)
reading, writing = os.pipe()
if os.fork() == 0:
    names.clear()
    y @ y
    os.write(writing, json.dumps(names).encode())
    os._exit(0)
os.wait()
print(json.dumps([counts, json.loads(os.read(reading, 1000))]))
""",
        tmp_path,
    )
    assert counts == {"blas::dgemm": 100}
    assert child == {"blas::dgemm": 1}


def test_time_in_blas_is_not_the_callers_own(tmp_path: Path) -> None:
    _run(
        """
opscope.remove_callback(handle)
big = np.ones((400, 400))
for _ in range(20):
    big @ big
print("[]")
""",
        tmp_path,
    )
    snapshot = Host(directories.exactly([str(tmp_path / "segments")]), consume=False).collect()
    assert "blas" in {key.framework for key in snapshot.keys}
    counters = snapshot.counters.tolist()
    rows = {key.op: row for key, row in zip(snapshot.keys, counters, strict=True)}
    caller = rows["numpy::matmul"]
    products = [row for op, row in rows.items() if op.startswith("blas::")]
    assert all(row[TOTAL_NS] == row[SELF_NS] > 0 for row in products)
    inside_ns = sum(row[TOTAL_NS] for row in products)
    assert caller[TOTAL_NS] - caller[SELF_NS] == pytest.approx(inside_ns, abs=4)  # each is rounded


@pytest.mark.parametrize("bridges", ["numpy", "numpy,scipy"])
def test_it_is_switched_off_by_its_name(tmp_path: Path, bridges: str) -> None:
    counts, pointers = _run(
        "y @ y; print(json.dumps([names, blas.status().pointers]))",
        tmp_path,
        OPSCOPE_BRIDGES=bridges,
    )
    assert (counts, pointers) == ({}, 0)


def test_it_needs_no_other_bridge(tmp_path: Path) -> None:
    counts, bridges = _run(
        "import scipy.linalg; y @ y, scipy.linalg.lu_factor(y);"
        "print(json.dumps([names, opscope.attach_status().bridges]))",
        tmp_path,
        OPSCOPE_BRIDGES="blas",
    )
    assert counts == {"blas::dgemm": 1, "lapack::dgetrf": 1}
    assert bridges == {"blas": "attached"}


def test_an_import_before_is_seen_too_and_a_second_attach_adds_nothing(tmp_path: Path) -> None:
    counts, same = _run(
        """
opscope.detach()
import scipy.linalg
opscope.attach()
pointers = blas.status().pointers
blas.attach()
y @ y, scipy.linalg.lu_factor(y)
print(json.dumps([names, pointers == blas.status().pointers]))
""",
        tmp_path,
    )
    assert counts == {"blas::dgemm": 1, "lapack::dgetrf": 1}
    assert same


def test_threads_may_call_while_it_attaches_and_detaches(tmp_path: Path) -> None:
    wrong, pointers = _run(
        """
import threading
opscope.remove_callback(handle)
expected, is_over, wrong = y @ y, threading.Event(), []

def work():
    while not is_over.is_set():
        if not np.array_equal(y @ y, expected) or not np.isfinite(np.linalg.solve(y, y)).all():
            wrong.append(threading.get_ident())

threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for _ in range(300):
    blas.detach()
    blas.attach()
is_over.set()
for thread in threads:
    thread.join()
print(json.dumps([wrong, blas.status().pointers]))
""",
        tmp_path,
    )
    assert wrong == []
    assert pointers > 30
