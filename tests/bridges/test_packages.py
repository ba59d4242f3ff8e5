"""Exact counts and unchanged results of packages with a bridge of one table.

Programs of their own, each run attached and bare. A package that is not installed is skipped;
`.venv-wide` has them all.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

_BEFORE = """
import collections, json, sys
import numpy as np
import opscope

names = collections.Counter()
IS_ATTACHED = sys.argv[1] == "attached"
if IS_ATTACHED:
    opscope.attach()
    opscope.add_global_callback(end=lambda fn, context: names.update([fn.name]))
rng = np.random.default_rng(0)
x = rng.standard_normal((100, 4))
y = np.arange(100) % 2
"""
_AFTER = """
print(json.dumps([[float(np.sum(value)) for value in results], names]))
"""


class Case(NamedTuple):
    package: str
    program: str
    counts: dict[str, int]


CASES = (
    Case(
        "numpy",
        """
legacy = np.random.RandomState(0)
results = [rng.normal(size=5) for _ in range(3)] + [legacy.rand(3) for _ in range(2)]
rng.shuffle(y)
np.random.seed(1)
results += [np.random.standard_normal(4), y]
""",
        {
            "numpy::random.Generator.normal": 3,
            "numpy::random.RandomState.rand": 2,
            "numpy::random.Generator.shuffle": 1,
            "numpy::random.RandomState.seed": 1,
            "numpy::random.RandomState.standard_normal": 1,
        },
    ),
    Case(
        "pandas",
        """
import pandas as pd
frame = pd.DataFrame({"key": y, "value": x[:, 0]})
results = [frame.groupby("key")["value"].sum().to_numpy() for _ in range(3)]
results.append(pd.unique(frame["key"]))
results.append(frame["value"].rolling(3).mean().fillna(0.0).to_numpy())
""",
        {"pandas::groupby.group_sum": 3, "pandas::window.aggregations.roll_mean": 1},
    ),
    Case(
        "lightgbm",
        """
import lightgbm
model = lightgbm.LGBMClassifier(n_estimators=4, n_jobs=1, verbose=-1).fit(x, y)
results = [model.predict_proba(x)]
""",
        {
            "lightgbm::LGBM_BoosterUpdateOneIter": 4,
            "lightgbm::LGBM_BoosterCreate": 1,
            "lightgbm::LGBM_BoosterPredictForMat": 1,
        },
    ),
    Case(
        "xgboost",
        """
import xgboost
rows = xgboost.DMatrix(x, label=y)
results = [xgboost.train({"nthread": 1}, rows, 4).predict(rows)]
""",
        {"xgboost::XGBoosterUpdateOneIter": 4, "xgboost::XGBoosterPredictFromDMatrix": 1},
    ),
    Case(
        "cv2",
        """
import cv2
results = [cv2.GaussianBlur(x, (3, 3), 1.0) for _ in range(3)]
results.append(cv2.resize(x, (8, 8)))
results.append(cv2.KalmanFilter(2, 1).predict())
try:
    cv2.resize(x, "no size")
except cv2.error as error:
    results.append(len(str(error)))
""",
        {"cv2::GaussianBlur": 3, "cv2::resize": 2, "cv2::KalmanFilter.predict": 1},
    ),
    Case(
        "skimage",
        """
from skimage import measure, segmentation
results = [measure.label(x > 0) for _ in range(2)]
results.append(segmentation.watershed(x))
""",
        {"skimage::segmentation.watershed_raveled": 1},
    ),
    Case(
        "onnxruntime",
        """
import onnxruntime
from onnx import TensorProto, helper
shape = [None, 4]
graph = helper.make_graph(
    [helper.make_node("Relu", ["a"], ["b"])], "one",
    [helper.make_tensor_value_info("a", TensorProto.DOUBLE, shape)],
    [helper.make_tensor_value_info("b", TensorProto.DOUBLE, shape)],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
session = onnxruntime.InferenceSession(
    model.SerializeToString(), providers=["CPUExecutionProvider"]
)
results = [session.run(None, {"a": x})[0] for _ in range(5)]
""",
        {"onnxruntime::InferenceSession.run": 5},
    ),
    Case(
        "polars",
        """
import polars
frame = polars.DataFrame({"key": y, "value": np.arange(100)})  # the order of sums varies
query = frame.lazy().group_by("key").agg(polars.col("value").sum())
results = [query.collect()["value"].sum() for _ in range(2)]
""",
        {"polars::PyLazyFrame.collect": 2, "polars::PySeries.sum": 2},
    ),
    Case(
        "numba",
        """
import pickle
import numba

@numba.njit
def total(values, scale=1.0):
    return values.sum() * scale

results = [total(x), total(x, 2.0), total(values=x, scale=3.0), len(total.signatures)]
results.append(total.py_func(x))
results.append(len(numba.typeof(x).name))
""",
        {"numba::total": 3},
    ),
    Case(
        "jax",
        """
import jax
import jax.numpy as jnp

@jax.jit
def scaled(values, scale=2.0):
    return values * scale

results = [scaled(x), scaled(x, 3.0), scaled(x, scale=4.0), jax.grad(lambda v: scaled(v).sum())(x)]
results.append(jax.vmap(scaled)(x))
""",
        {"jax::scaled": 5},  # those within grad and vmap are calls too
    ),
    Case(
        "bottleneck",
        """
import bottleneck
results = [bottleneck.nansum(x) for _ in range(3)] + [bottleneck.move_mean(x[:, 0], 2)[1:]]
""",
        {"bottleneck::nansum": 3, "bottleneck::move_mean": 1},
    ),
    Case(
        "numexpr",
        """
import numexpr
results = [numexpr.evaluate("x * 2 + 1", local_dict={"x": x}) for _ in range(3)]
""",
        {"numexpr::call": 3},
    ),
)


def _run(case: Case, how: str, directory: Path) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", _BEFORE + case.program + _AFTER, how],
        env={
            "PATH": "/usr/bin:/bin",
            "OPSCOPE_SAMPLING": "1",
            "OPSCOPE_DIR": str(directory / "segments"),
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.package)
def test_known_calls_are_counted_and_give_their_results(case: Case, tmp_path: Path) -> None:
    pytest.importorskip(case.package)
    results, counts = _run(case, "attached", tmp_path)
    bare, none = _run(case, "bare", tmp_path)
    assert {name: counts.get(name, 0) for name in case.counts} == case.counts
    assert results == bare
    assert none == {}
