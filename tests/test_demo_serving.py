"""The demonstration of the model server runs and shows what it promises."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest


@pytest.mark.slow
def test_the_demonstration_shows_throughput_batches_and_operators() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "opscope.demo_serving"],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    right = re.search(r"2000 images in [\d.]+ s: [\d,]+ a second, ([\d.]+)% right", done.stdout)
    assert right is not None
    assert float(right[1]) > 90
    assert re.search(r"\d+ batches, [\d.]+ images each on average", done.stdout)
    assert re.search(r"^digits  1        \d+ +serving::infer +\d+ +[\d.]+$", done.stdout, re.M)
