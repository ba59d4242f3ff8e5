"""What the bridge does in the PyTorch that this process imports, as JSON on the last line.

Attaches, then counts a training loop at once by the recorder, at p = 1, and by torch.profiler.
"""

import json
import platform
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import torch

from opscope.bridges import torch as bridge
from opscope.errors import BridgeError
from opscope.record import recorder
from tests.bridges.torch_observed import counts, profiled_calls, profiler, train_step
from tests.torch_versions.findings import Trial

_TURNS = 20


def main() -> None:
    try:
        bridge.attach()
    except BridgeError as error:
        trial = Trial(reason=str(error))
    else:
        trial = Trial(without=bridge.facts().get("torch.without", ""))
        trial.calls, trial.differences = _compare()
    trial.python, trial.torch = platform.python_version(), str(torch.__version__)
    print(json.dumps(vars(trial)))


def _compare() -> tuple[int, dict[str, list[int]]]:
    """Calls of all operators; of each that differs, the recorder's and the profiler's."""
    torch.set_num_threads(1)
    step = train_step()
    step()
    with tempfile.TemporaryDirectory() as directory:
        with profiler() as profiled:
            recorder.start(directory)
            for _ in range(_TURNS):
                step()
            recorder.stop()
        found = counts(Path(directory)).calls
    expected: Counter[Any] = profiled_calls(profiled)
    differing = [op for op in {*found, *expected} if found[op] != expected[op]]
    return expected.total(), {op: [found[op], expected[op]] for op in sorted(differing)}


if __name__ == "__main__":
    main()
