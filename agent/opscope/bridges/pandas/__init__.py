"""pandas' compiled functions as operators: the list of its extension modules.

Tried with pandas 3.1. Not seen: single timestamps, offsets and other scalars, which are cheaper
than a range, and what one compiled module calls in another.
"""

from opscope.bridges.extension_modules import ExtensionModules

FRAMEWORK = "pandas"

PREFIXES = ("pandas",)

PROBE = ("import numpy", "pandas.unique(numpy.ones(3))")

LATE_MODULES = (
    *("pandas._libs._ujson", "pandas._libs.algos", "pandas._libs.arrays"),
    *("pandas._libs.byteswap", "pandas._libs.groupby", "pandas._libs.hashing"),
    *("pandas._libs.hashtable", "pandas._libs.index", "pandas._libs.internals"),
    *("pandas._libs.interval", "pandas._libs.join", "pandas._libs.lib", "pandas._libs.missing"),
    *("pandas._libs.ops", "pandas._libs.parsers", "pandas._libs.reshape", "pandas._libs.sas"),
    *("pandas._libs.sparse", "pandas._libs.tslib", "pandas._libs.tslibs.conversion"),
    *("pandas._libs.tslibs.fields", "pandas._libs.tslibs.parsing", "pandas._libs.tslibs.period"),
    *("pandas._libs.tslibs.strptime", "pandas._libs.tslibs.timedeltas"),
    *("pandas._libs.tslibs.tzconversion", "pandas._libs.tslibs.vectorized"),
    *("pandas._libs.window.aggregations", "pandas._libs.window.indexers", "pandas._libs.writers"),
)
"""Its extension modules; those that a release lacks are never imported."""

_modules = ExtensionModules(FRAMEWORK, LATE_MODULES)
attach = _modules.attach
detach = _modules.detach
facts = _modules.facts
status = _modules.status
seen = _modules.seen
