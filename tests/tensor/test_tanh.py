"""The coefficients of tanh are the nearest possible ones."""

from __future__ import annotations

import runpy
from pathlib import Path

NATIVE = Path(__file__).parents[2] / "native/tensor"


def test_coefficients_are_those_of_the_fit() -> None:
    lines = runpy.run_path(str(NATIVE / "ops/elementwise/fit_tanh.py"))["lines"]()
    assert len(lines) == 7
    assert "\n".join(lines) in (NATIVE / "ops/elementwise/tanh.c").read_text()
