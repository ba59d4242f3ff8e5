"""Find the complete exemplars of a segment (native/SEGMENT.md).

The process writes them into a ring without waiting for readers, so an entry may be half old and
half new; its check word shows that. Damaged entries are skipped, since exemplars change no number.
host/exemplars.py maps them to series.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from opscope.segments import layout

FILE_LIMIT = 4096
"""Of one file."""


NONE: NDArray[Any] = np.zeros(0, layout.EXEMPLAR)


def whole(raw: bytes) -> NDArray[Any]:
    """The complete entries; at most FILE_LIMIT, the newest ones."""
    if not raw:
        return NONE
    words = np.frombuffer(raw, "<u8").reshape(-1, layout.EXEMPLAR.itemsize // 8)
    check = np.full(len(words), layout.EXEMPLAR_SEED, np.uint64)
    for column in range(words.shape[1] - 1):
        check = (check ^ words[:, column]) * np.uint64(layout.EXEMPLAR_FACTOR)
    found: NDArray[Any] = np.frombuffer(raw, layout.EXEMPLAR)[check == words[:, -1]]
    if len(found) > FILE_LIMIT:
        found = found[np.argsort(found["end_ticks"], kind="stable")[-FILE_LIMIT:]]
    return found
