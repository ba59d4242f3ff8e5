"""Build the environment in which a program and its children attach by themselves.

cli/run.py starts the program; site/sitecustomize.py runs inside it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

SITE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "site")


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """A copy of `environ` with opscope's sitecustomize first on PYTHONPATH, the rest unchanged.

    To Python, an empty PYTHONPATH means no path, but an empty entry means the current directory; so
    an empty PYTHONPATH is replaced, not extended.
    """
    given = environ.get("PYTHONPATH", "")
    entries = [entry for entry in given.split(os.pathsep) if entry != SITE] if given else []
    return {**environ, "PYTHONPATH": os.pathsep.join([SITE, *entries]), "OPSCOPE_ATTACH": "1"}
