"""Make the frameworks that a program has imported visible to a profile.

A bridge that is attached for a profile stays attached: detaching could undo an `opscope.attach`
made in between, and an unobserved range costs almost nothing. `opscope.attach()` begins permanent
recording.
"""

from __future__ import annotations

import sys
import warnings

from opscope import bridges, config


def attach_imported() -> None:
    """Attaches the configuration's bridges to imported frameworks; none with the kill switch.

    A bridge that fails causes a RuntimeWarning with the reason. Raises ConfigError for an invalid
    setting.
    """
    settings = config.load()
    for framework in bridges.modules() if settings.enabled else ():
        if not settings.attaches_to(framework) or not _is_imported(framework):
            continue
        try:
            bridges.configured(framework, settings).attach()
        except (Exception, SystemExit) as error:
            bridges.take_off(framework)
            warnings.warn(
                f"operators of {framework} are not in this profile: {error}",
                RuntimeWarning,
                stacklevel=_level_of_the_program(),
            )


def _is_imported(name: str) -> bool:
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return name in sys.modules and not getattr(spec, "_initializing", False)


def _level_of_the_program() -> int:
    """The stack level, for a warning of this function's caller, of the first frame outside of this
    package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__package__") == __package__:
        frame, level = frame.f_back, level + 1
    return level
