"""Operators that tasks of an event loop run are counted under the labels of their task."""

from pathlib import Path

import pytest

from opscope.host.host import Host

from .torch_observed import observed, observed_fork

PROGRAM = """
import asyncio
import numpy as np
import opscope
{imports}

async def request(number):
    for _ in range(number % 3):
        {operator}
        await asyncio.sleep(0)
    with opscope.debug_info(model_id=number):
        for turn in range(20):
            {operator}
            await asyncio.sleep(0.0001 * (turn % 3))
            {operator}
        await asyncio.to_thread(work)
    {operator}

def work():
    {operator}

async def serve():
    await asyncio.gather(*(request(number) for number in range(10)))

asyncio.run(serve())
work()
"""


@pytest.mark.parametrize(
    ("op", "imports", "operator"),
    [
        ("numpy::hypot", "x = np.ones(3)", "np.hypot(x, x)"),
        ("aten::hypot", "import torch; x = torch.ones(3)", "torch.hypot(x, x)"),
        ("core::outer", "import opscope.tensor as ot; x = ot.ones(3)", "x.outer(x)"),
    ],
    ids=["numpy", "torch", "core"],
)
def test_operators_of_tasks_have_the_labels_of_their_task(
    op: str, imports: str, operator: str, tmp_path: Path
) -> None:
    run = observed_fork if "torch" in imports else observed
    run(tmp_path, PROGRAM.format(imports=imports, operator=operator))
    snapshot = Host([str(tmp_path / "segments")], consume=False).collect()
    calls: dict[tuple[tuple[str, str], ...], float] = {}
    for key, count in zip(snapshot.keys, snapshot.calls, strict=True):
        if key.op == op:
            calls[key.labels] = calls.get(key.labels, 0) + float(count)
    labelled = {(("model_id", str(number)),): 41.0 for number in range(10)}
    assert calls == labelled | {(): 10 + 9 + 1}
