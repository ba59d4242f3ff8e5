"""Functions that JAX compiles as operators: `jax::NAME`, also those of `jax.numpy`.

Tried with JAX 0.10. The first call of a function for some shapes contains its compilation. A range
is a dispatch: what runs after the call has returned, on JAX's own threads, is not in its time. Not
seen: primitives within a compiled function, and operators that JAX calls without `jit`.
"""

import sys
from collections.abc import Iterator

from opscope.bridges.extension_modules import ExtensionModules

FRAMEWORK = "jax"

PREFIXES = ("jax",)


def _functions() -> Iterator[tuple[object, str]]:
    jit = getattr(sys.modules.get(FRAMEWORK), "jit", None)
    if jit is not None:
        # Any object shows the type of all; this one is never compiled.
        yield jit(_nothing), "jax::"


def _nothing() -> None:
    pass


_modules = ExtensionModules(FRAMEWORK, objects=_functions)
attach = _modules.attach
detach = _modules.detach
facts = _modules.facts
status = _modules.status
seen = _modules.seen
