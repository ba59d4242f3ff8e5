"""The operators' types for type checkers equal those of the table."""

from __future__ import annotations

import runpy
from pathlib import Path

import opscope.tensor
from opscope.tensor import composed

ROOT = Path(__file__).parents[2]
STUB = ROOT / "agent/opscope/tensor/_operators.pyi"


def test_stub_is_what_the_table_gives() -> None:
    generate = runpy.run_path(str(ROOT / "native/tensor/python/generate_stubs.py"))["generate"]
    assert STUB.read_text() == generate(), "run: make stubs"


def test_stub_has_each_function_and_method() -> None:
    text = STUB.read_text()
    for name in opscope.tensor.__all__:
        operator = opscope.tensor.operators.get(f"core::{name}")
        if operator is not None and name not in ("max", "min"):
            assert (f"\ndef {name}(" in text) == (name not in composed.FUNCTIONS)
            assert f"    def {name}(" in text or operator.parameters[:1] != ("self",)
