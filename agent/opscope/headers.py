"""The location of this installation's C headers and libraries."""

from __future__ import annotations

import os

from opscope import _native


def get_include() -> str:
    """The directory for a C compiler's `-I`, for example for `#include <opscope/record.h>`.

    Libraries with operators (`opscope/operator.h`) need nothing else.
    """
    return os.path.join(os.path.dirname(os.path.abspath(_native.__file__)), "include")


def get_library_dir() -> str:
    """The directory of `libopscope.so` (the record layer) and `libopscope_tensor.so` (the tensor
    core and compiled models), for a C compiler's `-L`.

    Its folders `pkgconfig` and `cmake` are for `PKG_CONFIG_PATH` and for CMake's `opscope_DIR`.
    """
    return os.path.dirname(os.path.abspath(_native.__file__))
