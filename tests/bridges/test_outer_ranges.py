"""Outer ranges around methods in Python: exact counts, and methods that look as before."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

_BEFORE = """
import collections, copy, inspect, io, json, pickle, re, sys, traceback, types, typing, warnings
import functools, unittest.mock, weakref
import numpy as np
import opscope

names = collections.Counter()
opscope.attach()
assert opscope.attach_status().attached, opscope.attach_status()
opscope.add_global_callback(end=lambda fn, context: names.update([fn.name]))
x = np.arange(400.0).reshape(100, 4) % 7
y = np.arange(100) % 3
"""


@pytest.fixture
def said(tmp_path: Path) -> Any:
    """Runs a program, and gives what it prints last, as JSON."""

    def run(program: str) -> Any:
        variables = {"OPSCOPE_SAMPLING": "1", "OPSCOPE_DIR": str(tmp_path / "segments")}
        done = subprocess.run(
            [sys.executable, "-c", _BEFORE + program],
            env={"PATH": "/usr/bin:/bin", **variables},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run


def test_estimators_are_counted_by_their_class(said: Any) -> None:
    counts = said(
        """
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

for _ in range(3):
    RandomForestClassifier(2, random_state=0).fit(x, y).predict(x)
make_pipeline(StandardScaler(), PCA(2)).fit(x).transform(x)
try:
    PCA(2).fit("no array")
except ValueError:
    pass
print(json.dumps({name: count for name, count in names.items() if name[:9] == "sklearn::"}))
"""
    )
    expected = {
        "sklearn::RandomForestClassifier.fit": 3,
        "sklearn::RandomForestClassifier.predict": 3,
        "sklearn::Pipeline.fit": 1,
        "sklearn::StandardScaler.fit_transform": 1,
        "sklearn::PCA.fit": 2,
        "sklearn::PCA.transform": 1,
    }
    assert {name: counts.get(name) for name in expected} == expected


def test_every_way_to_call_a_method_is_counted(said: Any) -> None:
    """Of classes that were imported before attaching, and of those that arrive later."""
    counts = said(
        """
opscope.detach()
from sklearn.preprocessing import FunctionTransformer
opscope.attach()
from sklearn.decomposition import PCA

class Own(FunctionTransformer):
    def fit(self, X, y=None):
        return super().fit(X, y)

one = FunctionTransformer()
assert one.fit(x) is one.fit(X=x) is FunctionTransformer.fit(one, x) is one
bound = one.fit
assert bound(x) is one and bound.__self__ is one and type(bound) is types.MethodType
assert functools.partial(FunctionTransformer.fit, one)(x) is one
assert list(map(one.fit, [x, x])) == [one, one]
own = Own()
assert own.fit(x) is own
assert PCA(2).fit(x).fit(x).n_components == 2
for wrong in (lambda: one.fit(), lambda: FunctionTransformer.fit(), lambda: one.fit(x, z=1)):
    try:
        wrong()
    except TypeError as error:
        assert "fit() " in str(error), error
print(json.dumps(names))
"""
    )
    # The calls with wrong arguments end in errors within ranges.
    assert counts["sklearn::FunctionTransformer.fit"] == 9
    assert counts["sklearn::Own.fit"] == 1
    assert counts["sklearn::PCA.fit"] == 2


def test_a_method_that_calls_that_of_its_base_class_is_one_range(said: Any) -> None:
    """TfidfVectorizer.fit calls CountVectorizer.fit_transform, whose object is the same."""
    counts = said(
        """
from sklearn.feature_extraction import text
from opscope.bridges import sklearn as bridge

class Base(text.CountVectorizer):
    def fit(self, x):
        return text.CountVectorizer.fit(self, x)

class Derived(Base):
    def fit(self, x):
        return super().fit(x)

Base.__module__ = Derived.__module__ = "sklearn.own"
sys.modules["sklearn.feature_extraction"].Derived = Derived
bridge.attach()
Derived().fit(["one two", "two three"])
print(json.dumps(names))
"""
    )
    assert counts["sklearn::Derived.fit"] == 1


def test_groups_joins_windows_and_reading_are_counted(said: Any) -> None:
    pytest.importorskip("pandas")
    counts = said(
        """
import pandas as pd
frame = pd.DataFrame({"key": [1, 2, 1], "value": [1.0, 2.0, 3.0]})
for _ in range(4):
    frame.groupby("key")["value"].mean()
    frame.merge(frame, on="key")
    frame["value"].rolling(2).mean()
    pd.read_csv(io.StringIO("a,b\\n1,2"))
print(json.dumps(names))
"""
    )
    for name in ("groupby", "merge", "rolling", "read_csv"):
        assert counts[f"pandas::{name}"] == 4
    assert counts["pandas::groupby.group_mean"] == 4
    assert counts["pandas::join.inner_join"] == 4


def test_methods_look_and_are_pickled_as_before(said: Any) -> None:
    facts = said(
        """
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA

def look():
    method, fitted = PCA.fit, PCA(2).fit(x)
    bound = pickle.loads(pickle.dumps(fitted.transform))
    return [
        str(inspect.signature(PCA.fit)), str(inspect.signature(fitted.fit)),
        inspect.isfunction(PCA.fit), inspect.ismethod(fitted.fit),
        isinstance(PCA.fit, types.FunctionType), inspect.getsource(PCA.fit),
        PCA.fit.__doc__, PCA.fit.__name__, PCA.fit.__qualname__, PCA.fit.__module__,
        PCA.fit.__code__.co_name, repr(PCA.fit).partition(" at ")[0],
        pickle.loads(pickle.dumps(PCA.fit)) is PCA.fit, copy.deepcopy(PCA.fit) is PCA.fit,
        pickle.dumps(PCA.fit).hex(), pickle.dumps(fitted.transform).hex(),
        bound(x).tolist(), PCA(2).fit_transform(x).tolist(), callable(PCA.fit),
        [name for name, _ in inspect.getmembers(PCA, inspect.isfunction)],
        KMeans(2, n_init=1, random_state=0).fit(x).labels_.tolist(), str(PCA(2).set_params()),
        weakref.ref(PCA.fit)() is PCA.fit, weakref.WeakMethod(fitted.transform)()(x).tolist(),
        list(weakref.WeakKeyDictionary({PCA.fit: 1}).values()),
        str(inspect.signature(functools.partial(PCA.fit, None))),
        str(inspect.signature(functools.wraps(PCA.fit)(lambda self: None))),
        str(inspect.signature(unittest.mock.create_autospec(PCA).fit)),
        typing.get_type_hints(PCA.fit), hash(PCA.fit) == hash(vars(PCA)["fit"]),
    ]

attached = look()
opscope.detach()
bare = look()
print(json.dumps([attached, bare, type(vars(PCA)["fit"]).__name__]))
"""
    )
    attached, bare, kind = facts
    assert attached == bare
    assert kind == "function"


def test_help_shows_the_same_text(said: Any) -> None:
    """pydoc reads docstrings with object.__getattribute__, which bypasses the object's own."""
    attached, bare = said(
        """
import pydoc
import sklearn.decomposition as decomposition
PCA = decomposition.PCA

def look():
    text = pydoc.plain(pydoc.render_doc(decomposition) + pydoc.render_doc(PCA.fit))
    return re.sub(" at 0x[0-9a-f]+", "", text)

attached = look()
opscope.detach()
print(json.dumps([attached, look()]))
"""
    )
    assert attached == bare
    assert "Fit the model with X." in attached


def test_the_attributes_are_those_of_the_function_past_the_object_too(said: Any) -> None:
    attached, bare = said(
        """
from sklearn.decomposition import PCA
NAMES = "doc name qualname dict code defaults kwdefaults annotations closure globals builtins"

def read(name):
    try:
        return repr(object.__getattribute__(PCA.fit, f"__{name}__"))
    except AttributeError as error:
        return repr(error)

def look():
    return [read(name) for name in [*NAMES.split(), "wrapped"]]

def look_at_changes():
    before, doc, wrapped = look(), PCA.fit.__doc__, PCA.fit.__wrapped__
    PCA.fit.__doc__ = "Other."
    del PCA.fit.__wrapped__
    PCA.fit.own = 1
    changed = look()
    del PCA.fit.__doc__, PCA.fit.own
    deleted = look()
    PCA.fit.__doc__, PCA.fit.__wrapped__ = doc, wrapped
    return [before, changed, deleted, str(inspect.getattr_static(PCA.fit, "__wrapped__"))]

attached, kind = look_at_changes(), type(PCA.fit)
assert (kind.__doc__, kind.__module__, kind.__name__) == (None, "opscope._native", "outer")
assert not hasattr(kind, "__wrapped__")
try:
    vars(kind)["__doc__"].__get__(1, int)
except TypeError as error:
    assert "no method" in str(error), error
else:
    raise AssertionError("read an attribute of an int")
opscope.detach()
print(json.dumps([attached, look_at_changes()]))
"""
    )
    assert attached == bare


def test_tracebacks_and_the_places_of_warnings_stay(said: Any) -> None:
    attached, bare = said(
        """
from sklearn.feature_extraction import text
from opscope.bridges import sklearn as bridge

class Warning_(text.CountVectorizer):
    def fit(self, x):
        warnings.warn("from its caller", UserWarning, stacklevel=2)
        raise ValueError("no")

Warning_.__module__ = "sklearn.own"
sys.modules["sklearn.feature_extraction"].Warning_ = Warning_

def look():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            Warning_().fit([])
        except ValueError as error:
            frames = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    return [frames, [(warning.filename, warning.lineno) for warning in caught]]

bridge.attach()
attached = look()
assert names["sklearn::Warning_.fit"] == 1, names
opscope.detach()
print(json.dumps([attached, look()]))
"""
    )
    assert attached == bare
    assert attached[0] == ["look", "fit"]
