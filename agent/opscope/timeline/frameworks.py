"""Makes the frameworks that a program has imported visible to a profile.

A bridge that is attached for a profile stays so: detaching would take it from an
:func:`opscope.attach` that came in between, and where nobody looks a range costs next to nothing.
Not here: recording all the time, which is what `opscope.attach()` begins.
"""

from __future__ import annotations

import sys
import warnings
from importlib import import_module

from opscope import config
from opscope.errors import BridgeError


def attach_imported() -> None:
    """Attaches the bridges of the configuration to what is imported; none with the kill switch.

    A RuntimeWarning says why where one cannot be had. Raises ConfigError where a setting cannot
    be used.
    """
    settings = config.load()
    for framework in settings.bridges if settings.enabled else ():
        if not _is_imported(framework):
            continue
        try:
            import_module(f"opscope.bridges.{framework}").attach()
        except (BridgeError, ImportError) as error:
            warnings.warn(
                f"operators of {framework} are not in this profile: {error}",
                RuntimeWarning,
                stacklevel=4,
            )


def _is_imported(name: str) -> bool:
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return name in sys.modules and not getattr(spec, "_initializing", False)
