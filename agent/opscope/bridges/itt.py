"""Tasks that any library marks through Intel's ITT, as `itt::NAME`.

A program asks for it with the setting `marks` (bridges/marks.py). PyTorch marks by
`torch.profiler.itt`, oneDNN marks each primitive that it runs, also within PyTorch. Names do not
contain the domain. Overlapped tasks may end on any thread. Not seen: tasks of a library whose
first one came before this bridge; tasks that have a clock of their own; frames, counters and
events.
"""

from opscope._native import lib
from opscope.bridges.marks import Marks

FRAMEWORK = "itt"

PREFIXES = ("itt",)

_marks = Marks(lib.OPSCOPE_MARKS_ITT, "INTEL_LIBITTNOTIFY64")
attach = _marks.attach
detach = _marks.detach
facts = _marks.facts
status = _marks.status
