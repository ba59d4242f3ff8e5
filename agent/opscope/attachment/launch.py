"""The environment in which a program and its children attach by themselves.

Not here: starting the program (cli/run.py), or what happens inside it (site/sitecustomize.py).
"""

from __future__ import annotations

import os
from collections.abc import Mapping

SITE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "site")


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """A copy of `environ` with opscope's sitecustomize first on PYTHONPATH, the rest as it was.

    An empty PYTHONPATH means none to Python, but an empty entry of it the current directory; so
    nothing is joined to an empty one.
    """
    given = environ.get("PYTHONPATH", "")
    entries = [entry for entry in given.split(os.pathsep) if entry != SITE] if given else []
    return {**environ, "PYTHONPATH": os.pathsep.join([SITE, *entries]), "OPSCOPE_ATTACH": "1"}
