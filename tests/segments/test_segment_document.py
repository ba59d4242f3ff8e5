"""native/SEGMENT.md gives every field of the layout, where the header file declares it."""

import re
from pathlib import Path

from opscope.segments import layout

DOCUMENT = Path(__file__).parents[2] / "native" / "SEGMENT.md"
STRUCTS = [
    layout.HEADER,
    layout.CONTROL,
    layout.ANSWER,
    layout.CHUNK,
    layout.ENTRY,
    layout.CELL,
    layout.LINE,
    layout.EXEMPLAR,
    layout.VARIANCE,
    layout.OFF_CPU,
]


def test_the_tables_are_those_of_the_header_file() -> None:
    rows = re.findall(r"^\| (\d+) \| (\d+) \| `(\w+)` \|", DOCUMENT.read_text(), re.MULTILINE)
    declared = [
        (str(offset), str(dtype.itemsize), name)
        for struct in STRUCTS
        for name, (dtype, offset, *_) in (struct.fields or {}).items()
    ]
    assert rows == declared


def test_the_phases_are_those_of_the_header_file() -> None:
    (line,) = re.findall(r"^Phases: (.*)\.$", DOCUMENT.read_text(), re.MULTILINE)
    assert line == ", ".join(f"{number} {name}" for number, name in enumerate(layout.PHASES))
