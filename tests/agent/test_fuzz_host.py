"""Segments with bytes changed at random: some of what `make fuzz-agent` does for longer."""

import pytest

from tests.agent.fuzz_host import run


@pytest.mark.parametrize("seed", range(2))
def test_a_pass_ends_well_whatever_a_file_holds(seed: int) -> None:
    assert run(seconds=600.0, executions=250, seed=seed) == 250
