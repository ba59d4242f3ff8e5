"""Training scripts written for PyTorch run with the core after a change of their import lines
alone, and give PyTorch's losses step by step to 1e-4."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

SCRIPTS = Path(__file__).parent / "scripts"
RANDOM = np.random.default_rng(11)
TEXT = "the quick brown fox jumps over the lazy dog and runs away from the slow cat; " * 4

INPUTS: dict[str, tuple[Any, ...]] = {
    "cnn": (
        RANDOM.integers(0, 256, (64, 12, 12)).astype(np.uint8),
        RANDOM.integers(0, 10, 64),
    ),
    "transformer": (
        (
            RANDOM.integers(1, 12, (32, 9)) * (np.arange(9) < RANDOM.integers(3, 10, (32, 1)))
        ).tolist(),
        RANDOM.integers(0, 3, 32).tolist(),
    ),
    "lstm": (TEXT, 8),
    "tagger": (
        [
            (RANDOM.integers(1, 20, n).tolist(), RANDOM.integers(0, 4, n).tolist())
            for n in RANDOM.integers(2, 9, 20)
        ],
        20,
        4,
    ),
}


def run(name: str, source: str) -> list[float]:
    """The losses of `main`, from weights that are the same for both libraries."""
    module = ModuleType(f"script_{name}")
    exec(compile(source, str(SCRIPTS / f"{name}.py"), "exec"), vars(module))

    def weights(model: Any) -> dict[str, Any]:
        random = np.random.default_rng(0)
        made = {}
        for key, value in model.state_dict().items():
            old = value.numpy()
            if old.dtype.kind == "f" and "running" not in key and key != "encoding.pe":
                old = random.normal(0, 0.2, old.shape).astype(old.dtype)
            made[key] = np.array(old)
        return made

    found: list[float] = module.main(*INPUTS[name], weights)
    return found


@pytest.mark.parametrize("name", INPUTS)
def test_a_script_gives_pytorchs_losses(name: str) -> None:
    source = (SCRIPTS / f"{name}.py").read_text()
    imports = re.compile(r"^(import|from) torch(?=[. ]|$)", re.MULTILINE)
    assert imports.search(source)
    changed = re.sub(r"^import torch$", "import opscope.tensor as torch", source, flags=re.M)
    changed = imports.sub(r"\1 opscope.tensor", changed)
    for before, after in zip(source.split("\n"), changed.split("\n"), strict=True):
        assert before == after or before.startswith(("import torch", "from torch"))
    expected = run(name, source)
    found = run(name, changed)
    assert len(found) == len(expected) > 12
    np.testing.assert_allclose(found, expected, atol=1e-4, rtol=1e-4)
    assert expected[0] != expected[1]
