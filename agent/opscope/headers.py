"""The location of this installation's C headers."""

from __future__ import annotations

import os

from opscope import _native


def get_include() -> str:
    """The directory for a C compiler's `-I`, for example for `#include <opscope/record.h>`.

    Libraries with operators (`opscope/operator.h`) need nothing else.
    """
    return os.path.join(os.path.dirname(os.path.abspath(_native.__file__)), "include")
