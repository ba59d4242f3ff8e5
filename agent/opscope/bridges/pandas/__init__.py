"""pandas' compiled functions as operators, and outer ranges around groups, joins and the like.

Tried with pandas 3.1. Not seen: single timestamps, offsets and other scalars, which are cheaper
than a range, and what one compiled module calls in another.
"""

import re
import sys
from collections.abc import Iterator
from types import FunctionType

from opscope.bridges.extension_modules import ExtensionModules

FRAMEWORK = "pandas"

PREFIXES = ("pandas",)

PROBE = ("import numpy", "pandas.unique(numpy.ones(3))")

LATE_MODULES = (
    *("pandas._libs._ujson", "pandas._libs.algos", "pandas._libs.arrays"),
    *("pandas._libs.byteswap", "pandas._libs.groupby", "pandas._libs.hashing"),
    *("pandas._libs.hashtable", "pandas._libs.index", "pandas._libs.internals"),
    *("pandas._libs.interval", "pandas._libs.join", "pandas._libs.json", "pandas._libs.lib"),
    *("pandas._libs.missing", "pandas._libs.ops", "pandas._libs.parsers"),
    *("pandas._libs.reduction", "pandas._libs.reshape", "pandas._libs.sas"),
    *("pandas._libs.sparse", "pandas._libs.tslib", "pandas._libs.tslibs.conversion"),
    *("pandas._libs.tslibs.fields", "pandas._libs.tslibs.parsing", "pandas._libs.tslibs.period"),
    *("pandas._libs.tslibs.strptime", "pandas._libs.tslibs.timedeltas"),
    *("pandas._libs.tslibs.tzconversion", "pandas._libs.tslibs.vectorized"),
    *("pandas._libs.window.aggregations", "pandas._libs.window.indexers", "pandas._libs.writers"),
)
"""Its extension modules; those that a release lacks are never imported."""

_TINY = re.compile(
    r"pandas::(lib\.(is_|item_from_zerodim|dtypes_all_equal)|missing\.(checknull|is_)"
    r"|internals\.Block(ValuesRefs|Placement)?\.|arrays\.|index\.IndexEngine\.(clear|get_loc|update)"
    r"|hashtable\..*\.(get_item|set_item|sizeof|get_state|get_count|to_array)$)"
)

_OUTER = (
    ("pandas.core.groupby.groupby", "GroupBy", "_cython_agg_general", "pandas::groupby"),
    ("pandas.core.groupby.groupby", "GroupBy", "_python_apply_general", "pandas::groupby"),
    ("pandas.core.groupby.generic", "SeriesGroupBy", "_cython_transform", "pandas::groupby"),
    ("pandas.core.groupby.generic", "DataFrameGroupBy", "_cython_transform", "pandas::groupby"),
    ("pandas.core.reshape.merge", "_MergeOperation", "get_result", "pandas::merge"),
    ("pandas.core.window.rolling", "BaseWindow", "_apply", "pandas::rolling"),
    ("pandas.core.window.rolling", "Window", "_apply", "pandas::rolling"),
    ("pandas.core.window.rolling", "BaseWindowGroupby", "_apply", "pandas::rolling"),
    ("pandas.io.parsers.readers", "TextFileReader", "read", "pandas::read_csv"),
)
"""What the public functions and methods come down to: the module, the class, its method, and the
operator. `frame.groupby(...)` itself computes nothing."""


def _methods(module: str) -> Iterator[tuple[type, str, str]]:
    for of, name, method, operator in _OUTER:
        owner = getattr(sys.modules.get(module), name, None) if of == module else None
        if isinstance(owner, type) and type(vars(owner).get(method)) is FunctionType:
            yield owner, method, operator


_modules = ExtensionModules(
    FRAMEWORK,
    LATE_MODULES,
    methods=_methods,
    outer=[module for module, _, _, _ in _OUTER],
    is_tiny=_TINY.match,
)
attach, detach, facts, status, seen = _modules.functions
