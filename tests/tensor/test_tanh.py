"""The coefficients of tanh are those that are nearest to it."""

from __future__ import annotations

import runpy
from pathlib import Path

NATIVE = Path(__file__).parents[2] / "native/tensor"


def test_coefficients_are_those_of_the_fit() -> None:
    lines = runpy.run_path(str(NATIVE / "fit_tanh.py"))["lines"]()
    assert len(lines) == 7
    assert "\n".join(lines) in (NATIVE / "ops/tanh.c").read_text()
