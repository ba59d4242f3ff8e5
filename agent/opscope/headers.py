"""Where the C headers of this installation are."""

from __future__ import annotations

import os

from opscope import _native


def get_include() -> str:
    """The directory for a C compiler's ``-I``: ``#include <opscope/record.h>``, for one.

    Libraries that bring operators (``opscope/operator.h``) need nothing else.
    """
    return os.path.join(os.path.dirname(os.path.abspath(_native.__file__)), "include")
