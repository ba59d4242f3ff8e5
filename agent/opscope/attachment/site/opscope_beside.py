"""Start opscope in a process where Python runs another agent's sitecustomize.

`opentelemetry-instrument` puts its own sitecustomize first on PYTHONPATH and runs no other, but
calls the entry points of the group `opentelemetry_pre_instrument`; opscope_beside.egg-info/
registers this one. Only a process that skipped opscope's sitecustomize still has this directory on
its search path.
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
