"""Ranges that any library marks through NVTX, as `nvtx::NAME`; no GPU is needed.

A program asks for it with the setting `marks` (bridges/marks.py). Seen: pushes and pops, and ranges
between a start and an end that may be on different threads (`nvtxRangeStart`), with and without a
domain, of NVTX 2 and 3; the package `nvtx` makes its annotations of pushes and pops. Names do not
contain the domain. Not seen: marks of a library whose first one came before this bridge; points in
time.
"""

from opscope._native import lib
from opscope.bridges.marks import Marks

FRAMEWORK = "nvtx"

PREFIXES = ("nvtx",)

_marks = Marks(lib.OPSCOPE_MARKS_NVTX, "NVTX_INJECTION64_PATH")
attach = _marks.attach
detach = _marks.detach
facts = _marks.facts
status = _marks.status
