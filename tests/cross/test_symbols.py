"""A wheel for musl needs no name that the oldest musl it is for lacks."""

from pathlib import Path

import pytest

from native.cross import symbols

LIBRARY = """
Symbol table '.dynsym' contains 7 entries:
   Num:    Value          Size Type    Bind   Vis      Ndx Name
     0: 0000000000000000     0 NOTYPE  LOCAL  DEFAULT  UND
     1: 0000000000000000     0 NOTYPE  WEAK   DEFAULT  UND __cxa_finalize
     2: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND getauxval
     3: 0000000000000000     0 NOTYPE  GLOBAL DEFAULT  UND {}
     4: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND PyLong_FromLong
     5: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND opscope_other
     6: 0000000000001040    52 FUNC    GLOBAL DEFAULT   12 opscope_own@@OPSCOPE_1 (2)
"""
OTHER = "     1: 0000000000001040    52 FUNC    GLOBAL DEFAULT   12 opscope_other\n"
MUSL = "   240: 000000000003c4c0   100 FUNC    WEAK   DEFAULT    9 getauxval\n"


@pytest.mark.parametrize(
    ("name", "expected"),
    [("__getauxval", {"__getauxval"}), ("opscope_own", set()), ("getauxval", set())],
)
def test_names_that_neither_the_wheel_nor_musl_has_are_found(
    monkeypatch: pytest.MonkeyPatch, name: str, expected: set[str]
) -> None:
    tables = {"library": LIBRARY.format(name), "other": OTHER, "musl": MUSL}
    monkeypatch.setattr(symbols, "run", lambda *command: tables[command[-1].name])
    found = symbols.missing([Path("library"), Path("other")], Path("musl"))
    assert found == expected
