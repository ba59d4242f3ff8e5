"""Random segments and directories: a short run of what `make fuzz-agent` does for longer."""

import pytest

from tests.host import fuzz_directories
from tests.host.fuzz_host import run, run_in_memory


@pytest.mark.parametrize("seed", range(2))
def test_a_pass_ends_well_whatever_a_file_holds(seed: int) -> None:
    assert run(seconds=600.0, executions=250, seed=seed) == 250


def test_the_reader_ends_well_whatever_it_reads() -> None:
    done, taken = run_in_memory(seconds=600.0, executions=3000, seed=1)
    assert done == 3000
    assert 0 < taken < done


@pytest.mark.slow
def test_all_that_reads_ends_well_whatever_directories_hold() -> None:
    done, _ = fuzz_directories.run(seconds=600.0, rounds=30, seed=15)
    assert done == 30
