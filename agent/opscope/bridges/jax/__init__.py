"""Functions that JAX compiles as operators: `jax::NAME`, also those of `jax.numpy`.

Tried with JAX 0.10 and 0.12. The first call of a function for some shapes contains its compilation.
A range is a dispatch: what runs after the call has returned, on JAX's own threads, is not in its
time. Not seen: primitives within a compiled function, and operators that JAX calls without `jit`.
What JAX compiles is counted as metrics (compile.py).
"""

import sys

from opscope.bridges.extension_modules import ExtensionModules, Found

FRAMEWORK = "jax"

PREFIXES = ("jax",)


def _functions() -> Found:
    jit = getattr(sys.modules.get(FRAMEWORK), "jit", None)
    # Any object shows the type of all; this one is never compiled.
    return [] if jit is None else [(jit(_nothing), "jax::")]


def _nothing() -> None:
    pass


_modules = ExtensionModules(FRAMEWORK, objects=_functions)


def attach() -> None:
    """Makes compiled functions visible, and counts compilations; a second call adds nothing.

    Raises BridgeError with the reason if JAX is not imported or cannot be attached to.
    """
    _modules.attach()
    from opscope.bridges.jax import compile as compilations

    compilations.follow()


def detach() -> None:
    """Restores JAX; does nothing unless attached."""
    _modules.detach()
    if "opscope.bridges.jax.compile" in sys.modules:
        sys.modules["opscope.bridges.jax.compile"].leave()


facts = _modules.facts
status = _modules.status
seen = _modules.seen
