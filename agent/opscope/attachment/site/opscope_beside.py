"""Lets opscope start where another agent's sitecustomize is the one that Python runs.

`opentelemetry-instrument` puts its own first on PYTHONPATH and runs no other, but calls what is
registered for its `opentelemetry_pre_instrument`: opscope_beside.egg-info/ registers this. Only
a process that ours could not run in has this directory on its search path still.
"""

import os


def start():
    # type: () -> None
    """Runs sitecustomize.py of this directory; raises nothing."""
    try:
        from importlib.machinery import SourceFileLoader

        path = os.path.join(os.path.dirname(__file__), "sitecustomize.py")
        module = type(os)("opscope_beside")
        module.__file__ = path
        SourceFileLoader(module.__name__, path).exec_module(module)
    except Exception:
        pass
